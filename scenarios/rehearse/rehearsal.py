"""One rehearsal of a launch: its world with times scaled, and the records of its steps."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

from des.base.command import UsageError
from des.base.flags import option
from des.base.strict_json import parse_json
from des.base.text_files import read_text
from des.world.hosts import HOSTS, hosts_named
from des.world.runtime import Receives
from scenarios.iteration.launch_folder import HOSTS as HOSTS_FILE
from scenarios.iteration.launch_folder import PLAN
from scenarios.iteration.reference_launch import rank_devices, read_reference_launch
from scenarios.iteration.runtime_job import OPERATIONS, RUNTIME
from scenarios.rehearse.emulated_links import DEVICE, EmulatedSites, emulated_sites, undisturbed
from scenarios.rehearse.rehearsed_world import RehearsedWorld
from scenarios.rehearse.seats import Seat

_LEAD_S = 0.05
"""Time between telling all ranks the start of a step, and that start."""


class RankFailedError(ValueError):
    """A rank ended before its work was done, or said nothing for too long."""


class RankProcesses:
    """Running ranks, and the lines that they say: documents, or text that is kept for errors."""

    def __init__(self, sites: Sequence[str]) -> None:
        self._sites = sites
        self._lines: Queue[tuple[int, str]] = Queue()
        self._inputs: list[IO[str]] = []
        self._last: dict[int, str] = {}

    def add(self, stdin: int, stdout: int) -> None:
        """Add the streams of one more rank; what it says is read on a thread."""
        rank = len(self._inputs)
        self._inputs.append(os.fdopen(stdin, "w", encoding="utf-8"))
        threading.Thread(target=self._read, args=(rank, stdout), daemon=True).start()

    def _read(self, rank: int, stdout: int) -> None:
        with open(stdout, encoding="utf-8") as said:
            for line in said:
                self._lines.put((rank, line.strip()))
        self._lines.put((rank, ""))

    def documents(self, limit_s: float) -> list[dict[str, Any]]:
        """Return the next document of each rank.

        Raises
        ------
        RankFailedError
            If one ends, with its last line, or does not answer in time.
        """
        found: dict[int, dict[str, Any]] = {}
        end_s = time.monotonic() + limit_s
        while len(found) < len(self._inputs):
            try:
                rank, line = self._lines.get(timeout=max(0.0, end_s - time.monotonic()))
            except Empty:
                ranks = range(len(self._inputs))
                silent = [self._name(one) for one in ranks if one not in found]
                raise RankFailedError(
                    f"rehearse: no answer within {limit_s:.0f} s from {', '.join(silent)}"
                ) from None
            if line.startswith("{"):
                document: Any = parse_json(line)
                found.setdefault(rank, document)
            elif line:
                self._last[rank] = line
            elif rank not in found:
                said = self._last.get(rank, "nothing")
                raise RankFailedError(
                    f"rehearse: {self._name(rank)} ended early; it said last: {said}"
                )
        return [found[rank] for rank in range(len(self._inputs))]

    def close(self) -> None:
        """Close the inputs of all ranks."""
        for stream in self._inputs:
            with suppress(BrokenPipeError):
                stream.close()

    def _name(self, rank: int) -> str:
        return f"rank {rank} in {self._sites[rank]}"

    def step(self, limit_s: float) -> list[dict[str, Any]]:
        """Let all ranks do a step from a common start; their records."""
        start = f"{time.monotonic() + _LEAD_S!r}\n"
        for rank, stream in enumerate(self._inputs):
            try:
                stream.write(start)
                stream.flush()
            except BrokenPipeError:
                self.documents(limit_s)
                raise RankFailedError(f"rehearse: {self._name(rank)} ended early") from None
        return self.documents(limit_s)


@contextmanager
def rank_processes(
    emulated: EmulatedSites, domains: Sequence[int], names: Sequence[str], flags: Sequence[str]
) -> Iterator[RankProcesses]:
    """Start a rank in each of some domains; none is left at the end.

    Parameters
    ----------
    domains
        Domain of each rank.
    names
        Names of the domains of the ranks.
    flags
        Arguments of all ranks.
    """
    environment = os.environ | {"GLOO_SOCKET_IFNAME": DEVICE, "OMP_NUM_THREADS": "1"}
    meeting = os.memfd_create("store", 0)  # in memory: over links ranks would take minutes to meet
    store = f"file:///proc/self/fd/{meeting}"
    ranks, seats, theirs = RankProcesses(names), [], [meeting]
    for rank, domain in enumerate(domains):
        (stdin, to_rank), (from_rank, stdout) = os.pipe(), os.pipe()
        ranks.add(to_rank, from_rank)
        own = [*flags, "--rank", str(rank), "--store", store]
        seats.append(Seat(emulated.space(domain), stdin, stdout, own))
        theirs += [stdin, stdout]
    module = [sys.executable, "-m", "scenarios.rehearse.forked_ranks", json.dumps(seats)]
    command = [*undisturbed(), "setpriv", "--pdeathsig", "KILL", *module]
    running = subprocess.Popen(command, env=environment, pass_fds=theirs)
    for stream in theirs:
        os.close(stream)
    try:
        yield ranks
    finally:
        running.kill()
        running.wait()
        ranks.close()


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
        domains = [domain for domain, _ in rank_devices(world.bound)]
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
