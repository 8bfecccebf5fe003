"""One rehearsal of a launch: its world with times scaled, and the records of its steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from des.base.command import UsageError
from des.base.flags import option
from des.base.text_files import read_text
from des.world.hosts import HOSTS, hosts_named
from des.world.runtime import Receives
from scenarios.iteration.launch_folder import HOSTS as HOSTS_FILE
from scenarios.iteration.launch_folder import PLAN
from scenarios.iteration.reference_launch import ranked_devices, read_reference_launch
from scenarios.iteration.runtime_job import OPERATIONS, RUNTIME
from scenarios.rehearse.emulated_links import emulated_sites
from scenarios.rehearse.rank_processes import rank_processes
from scenarios.rehearse.rehearsed_world import RehearsedWorld

WARM_UP = 2
"""Steps before those that count: they open the windows of TCP."""

Records = Sequence[dict[str, Any]]
"""Records of all ranks of a step."""


@dataclass(frozen=True, kw_only=True)
class RehearsalFlags:
    """Settings of every rehearsal."""

    iterations: int = option(5, f"steps that count, after {WARM_UP} of warm-up")
    receives: str = option("first", "first: post all receives of a step first; stock: as torch")
    connections: int = option(
        0, "connections of each pair of ranks", default_text="2, or with stock receives 1"
    )
    hosts: str = option("linux_tuned", f"TCP of the hosts: {', '.join(HOSTS)}")
    link_gbit: float = option(0.25, "rate of the fastest link in Gbit/s; all are slowed down alike")
    compute: bool = option(False, "let passes take what they need instead of the plan's times")

    def __post_init__(self) -> None:
        if self.receives not in OPERATIONS:
            allowed = ", ".join(OPERATIONS)
            raise UsageError(f"receives must be one of {allowed}; got {self.receives}")
        if self.iterations < 1:
            raise UsageError(f"iterations must be at least 1, got {self.iterations}")
        hosts_named(self.hosts)

    def world(self, folder: Path, scale: float) -> RehearsedWorld:
        """Read the world of a launch, with all times multiplied by ``scale``.

        Raises
        ------
        ValueError
            If files are missing, or others than those of the plan that they say.
        """
        names = PLAN, HOSTS_FILE, RUNTIME, *OPERATIONS.values()
        files = {name: read_text(folder / name, "launch ") for name in names}
        read = read_reference_launch(files)
        receives: Receives = "first" if self.receives == "first" else "stock"
        return RehearsedWorld(
            bound=replace(read.said, plan=read.plan),
            receives=receives,
            num_connections=self.connections or (2 if receives == "first" else 1),
            hosts=self.hosts,
            scale=scale,
            link_gbit=self.link_gbit,
        )

    def measured(self, folder: Path, world: RehearsedWorld) -> list[Records]:
        """Run a launch and return the records of each step that counts.

        Raises
        ------
        UsageError
            If links cannot be emulated here.
        RankFailedError
            If a rank ends early or says nothing.
        """
        domains = [domain for domain, _ in ranked_devices(world.bound)]
        flags = {
            "steps": WARM_UP + self.iterations,
            "receives": self.receives,
            "connections": world.num_connections,
            "every": 1,
            "layers": 0 if self.compute else 1,
            "passes": "computed" if self.compute else "slept",
            "scale": world.scale,
            "byte-scale": world.byte_scale,
        }
        words = [str(folder), "--is-started"]
        for name, value in flags.items():
            words += [f"--{name}", str(value)]
        names = [world.bound.topology.domains[domain].name for domain in domains]
        limit_s = 120.0 + 20.0 * world.scale * world.bound.step_s
        is_tuned = not hosts_named(self.hosts).restart_after_idle
        with (
            emulated_sites(world.topology, is_tuned=is_tuned) as sites,
            rank_processes(sites, domains, names, words) as ranks,
        ):
            ranks.documents(limit_s)
            steps: list[Records] = []
            for _ in range(WARM_UP + self.iterations):
                steps.append(ranks.step(limit_s))
        return steps[WARM_UP:]


def ended_s(step: Records) -> float:
    """Time at which the last rank has done a step. [s]"""
    return float(max(own["end_s"] for own in step))
