"""Settings of a comparison of schedulers, and the combinations that it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from agents.cluster.pricing.link_rules import LINK_RULES
from agents.planners.names import PLANNER_NAMES, POLICY
from des.base.checks import (
    require_count,
    require_known,
    require_non_negative,
    require_positive,
    require_seed,
)
from des.base.command import UsageError
from des.base.flags import option
from scenarios.frame.outputs import OutputFlags

COMPATS = ("none", "blox")
WORKLOADS = ("philly_like", "long", "dual")
PRICINGS = ("plain", "network")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the comparison."""

    policy: tuple[str, ...] = option(("fifo", "las", "srtf"), "orderings, see below")
    placing: tuple[str, ...] = option(("first_free",), "placings, see below")
    admission: tuple[str, ...] = option(("accept_all",), "admissions, see below")
    preempting: tuple[str, ...] = option(("worst_first",), "rules of preemption, see below")
    level: str = option("", "level that jobs should share: node, rack, domain", default_text="any")
    level_required: bool = option(False, "wait until a job fits into one unit of --level")
    quota: tuple[str, ...] = option(
        (), "quotas of tenants, such as a=64,b=32", default_text="equal parts"
    )
    policy_file: Path | None = option(
        None, "policy of eastwest train queue, for --policy ppo", is_file=True, default_text="none"
    )
    quantum: float = option(0.0, "time between preemptions [s]", default_text="the policy's")
    network: str = option(
        "",
        "topology file, or a shipped world, whose domains' GPUs replace --nodes",
        is_file=True,
        default_text="none",
    )
    pricing: str = option(
        "plain", "rates: plain, or network (iterations by the simulator, on links that jobs share)"
    )
    planner: str = option("proportional", "plans over several domains: a planner, or hi_ppo")
    link_sharing: str = option("fair", "links among jobs: fair, or priority (of the jobs)")
    price_store: Path | None = option(
        None, "file that keeps the times of iterations", default_text="memory"
    )
    nodes: int = option(32, "nodes of the cluster")
    gpus_per_node: int = option(4, "GPUs of a node")
    nodes_per_rack: int = option(0, "nodes of a rack; 0: no racks")
    domains: int = option(1, "domains over which the nodes are spread")
    workload: str = option(
        "philly_like", "jobs that are drawn: philly_like, long (10 to 24 h) or dual"
    )
    mix: str = option("single", "GPUs of drawn jobs: single, or blox (1, 2, 4, 8)")
    load: tuple[float, ...] = option(
        (4.0,), "jobs an hour, a run each; of a trace: 0 keeps its own"
    )
    trace: Path | None = option(
        None, "trace in place of drawn jobs", is_file=True, default_text="drawn jobs"
    )
    trace_form: str = option("auto", "form of the trace, see below")
    columns: tuple[str, ...] = option(
        (),
        "columns of another CSV file: submit=NAME,gpus=NAME,duration=NAME (or end=NAME,start=NAME)"
        ", name, tenant, user, model, priority; times in seconds or dates",
    )
    completed_only: bool = option(False, "leave out failed and killed jobs of a trace")
    density: float = option(1.0, "factor on the rate of a trace's own arrivals")
    track: str = option(
        "", "first:last job recorded; others are load", default_text="0:999, or the whole trace"
    )
    seeds: int = option(1, "workload seeds, a run each")
    seed: int = option(0, "first of the seeds")
    round_duration: float = option(0.0, "decisions at multiples of it only [s]; 0: at events")
    compat: str = option("none", "blox: the rules of Blox, with its accidents")
    blox_rate: float = option(1.0, "service rate under --compat blox")
    restart: float = option(11.4, "time of a restart after a suspension [s]")
    elastic_gpus: int = option(0, "GPUs that a job may have at most, from 1 on; 0: its own number")
    mtbf_hours: float = option(0.0, "mean time between failures of a node [h]; 0: none fails")
    repair_hours: float = option(1.0, "mean time of a repair [h]")
    checkpoint: float = option(1800.0, "service between checkpoints [s]")
    gpu_hour_usd: float = option(0.0, "price of a GPU hour held; 0: no costs")
    until_days: float = option(1000.0, "end of a run in any case [days]")
    count_too_wide: bool = option(False, "count jobs wider than the cluster, not refuse them")
    preset: str = option("", "blox-fig6, blox-fig12 or blox-fig13, see below", default_text="none")
    quick: bool = option(False, "of a preset: jobs 200 to 300 in place of 3000 to 4000")
    workers: int = option(2, "processes at a time")
    out: Path | None = option(None, "new or empty folder for the files", default_text="none")


class Combination(NamedTuple):
    """One run: names of the parts of a policy, a load and a workload seed."""

    policy: str
    placing: str
    admission: str
    preempting: str
    load: float
    seed: int

    @property
    def scheduler(self) -> str:
        """Name of the policy; parts are named where they are not the usual ones."""
        usual = {"placing": "first_free", "admission": "accept_all", "preempting": "worst_first"}
        others = [getattr(self, part) for part in usual if getattr(self, part) != usual[part]]
        return "+".join((self.policy, *others))


PRESETS: dict[str, dict[str, object]] = {
    "blox-fig6": {
        "policy": ("fifo", "las", "optimus"),
        "load": tuple(float(load) for load in range(1, 9)),
    },
    "blox-fig12": {
        "policy": ("las",),
        "admission": ("accept_all", "load_1.2", "load_1.4"),
        "load": (8.0,),
    },
    "blox-fig13": {
        "policy": ("fifo", "srtf", "las"),
        "admission": ("accept_all", "load_1.2", "load_1.4"),
        "load": (9.0,),
        "workload": "dual",
    },
}
"""Settings of the figures of Blox, on 32 nodes of 4 GPUs in rounds of 300 s."""


def with_preset(config: Config, given: frozenset[str]) -> Config:
    """Fill in a preset; what the user gave stays.

    Raises
    ------
    UsageError
        If there is no such preset.
    """
    if not config.preset:
        return config
    require_known("--preset: unknown", config.preset, PRESETS, UsageError)
    preset: dict[str, object] = {
        "compat": "blox",
        "round_duration": 300.0,
        "track": "200:300" if config.quick else "3000:4000",
        **PRESETS[config.preset],
    }
    chosen = {name: value for name, value in preset.items() if name not in given}
    return replace(config, **chosen)  # type: ignore[arg-type]


def checked(config: Config) -> Config:
    """Refuse settings that would fail only after minutes.

    Raises
    ------
    ValueError
        If a setting is out of range, or two do not go together.
    """
    owner = "job queue"
    config.choice()
    for name in ("nodes", "gpus_per_node", "seeds", "workers", "domains"):
        require_count(owner, name, getattr(config, name), 10**6)
    for name in ("density", "blox_rate", "until_days", "repair_hours", "checkpoint"):
        require_positive(owner, name, getattr(config, name))
    for name in ("round_duration", "restart", "gpu_hour_usd", "quantum", "mtbf_hours"):
        require_non_negative(owner, name, getattr(config, name))
    require_seed(owner, "seed", config.seed)
    if config.elastic_gpus:
        require_count(owner, "elastic_gpus", config.elastic_gpus)
    for name in ("policy", "placing", "admission", "preempting", "load"):
        values = getattr(config, name)
        if not values or len(set(values)) < len(values):
            raise UsageError(f"--{name}: must be one or more, each once, got {values}")
    for name, value, allowed in (
        ("compat", config.compat, COMPATS),
        ("workload", config.workload, WORKLOADS),
        ("pricing", config.pricing, PRICINGS),
        ("link-sharing", config.link_sharing, LINK_RULES),
        ("planner", config.planner, (*PLANNER_NAMES, POLICY)),
    ):
        require_known(f"--{name}: unknown", value, allowed, UsageError)
    if config.pricing == "network" and not config.network:
        raise UsageError("--network: must be given with --pricing network, got none")
    if config.pricing == "network" and config.compat == "blox":
        raise UsageError("--pricing: must be plain with --compat blox, got network")
    if config.compat == "blox" and not config.round_duration:
        raise UsageError("--round-duration: must be given with --compat blox, got 0")
    if config.trace is None and not all(rate > 0 for rate in config.load):
        raise UsageError(f"--load: must be positive without --trace, got {config.load}")
    tracked_of(config)
    quotas_of(config)
    return config


def tracked_of(config: Config) -> tuple[int, int] | None:
    """First and last tracked job; None for the whole trace.

    Raises
    ------
    UsageError
        If ``track`` is not two numbers.
    """
    if not config.track:
        return None if config.trace is not None else (0, 999)
    first, _, last = config.track.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise UsageError(f"--track: must be FIRST:LAST, such as 3000:4000, got {config.track!r}")
    return int(first), int(last)


def quotas_of(config: Config) -> dict[str, float]:
    """Quotas of tenants.

    Raises
    ------
    UsageError
        If an entry is not TENANT=GPUS.
    """
    found = {}
    for entry in config.quota:
        tenant, _, gpus = entry.partition("=")
        if not tenant or not gpus.isdecimal() or not int(gpus):
            raise UsageError(f"--quota: must be TENANT=GPUS, such as a=64, got {entry!r}")
        found[tenant] = float(gpus)
    return found


def combinations(config: Config) -> Iterator[Combination]:
    """All runs, seed by seed within each load and policy."""
    parts = (config.policy, config.placing, config.admission, config.preempting, config.load)
    seeds = range(config.seed, config.seed + config.seeds)
    return map(Combination._make, product(*parts, seeds))
