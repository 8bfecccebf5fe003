"""Write a folder that ASTRA-sim runs as it is: traces, network, system, and the command lines."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from calibration.cases.aggregation import DEFAULT_AGGREGATION, Aggregation
from calibration.cases.case import PlacementCase
from calibration.cases.worlds import snapshot
from calibration.commands.console import say
from calibration.commands.flags import DEFAULT_MODEL, ENDPOINTS_HELP, Endpoints, WorldFlags
from calibration.reference.astra_config import Backend
from calibration.reference.export import why_only_ours, write_folder, write_ns3_folder
from des import (
    DEFAULT_SCHEDULE,
    SCHEDULES,
    Parallelism,
    Placement,
    Plan,
    Replay,
    Topology,
    build_workload,
)
from des.base.checks import require_count, require_positive, require_seed
from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.base.flags import option, required
from des.job.models import MODEL_HELP
from des.job.transformer import Recomputation
from des.plan.parallelism import Sharding
from des.plan.shares import parse_counts

EXAMPLES = """\
examples:
  python -m calibration export --out runs/trace
      Llama 2 70B in even parts on the default world, for the original's programs and our engine
  python -m calibration export --endpoints overlapped --backend pairwise --out runs/ours
      as many messages in flight as there are, every link its own: for our engine alone
  python -m calibration export --granularity gpu --parallelism 4x2x1 --backend unaware --out runs/g
      one NPU per GPU, four dividing the layers and two the microbatches
  python -m calibration export --backend ns3 --out runs/packets
      physical topology and settings for ASTRA-sim's ns-3
"""


ROUNDS = 2
"""Parts of each domain where the schedule needs several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(WorldFlags):
    """Flags of an export."""

    endpoints: Endpoints | None = option(
        "one_in_flight", f"{ENDPOINTS_HELP}; none: as the network has it"
    )
    backend: Backend | Literal["ns3"] = option(
        "aware", "network that the folder is for; ns3: ASTRA-sim's own packet level"
    )
    network_aggregation: Aggregation = option(
        DEFAULT_AGGREGATION, "one figure of unequal links, for unaware and aware"
    )
    model: str = option(DEFAULT_MODEL, MODEL_HELP, is_file=True)
    num_layers: int | None = option(
        None, "number of equal layers; none: those of the model", check=require_count
    )
    placement: str | None = option(
        None,
        "domain times layers, such as 0*28,1*26,2*26; none: even parts, for interleaved_1f1b two "
        "of each domain, in turn",
    )
    replicas: str | None = option(None, "placements of further replicas, separated by semicolons")
    shares: str | None = option(
        None, "microbatches of each replica, such as 20,12; none: as even as can be"
    )
    schedule: str = option(DEFAULT_SCHEDULE, f"one of {', '.join(SCHEDULES)}")
    parallelism: str | None = option(
        None, "tensor x data x pipeline, for all domains or one for each"
    )
    sharding: Sharding = option("none", "state that the replicas in a domain spread")
    activation_compression: float = option(
        1.0, "factor by which messages shrink", check=require_positive
    )
    microbatches: int = option(32, "microbatches of an iteration", check=require_count)
    microbatch_size: int = option(1, "sequences of a microbatch", check=require_count)
    sequence_length: int = option(4096, "tokens of a sequence", check=require_count)
    recomputation: Recomputation = option("flash", "activations kept for the backward pass")
    seed: int | None = option(
        None, "draw an epoch of the links; none: their base figures", check=require_seed
    )
    out: Path = required("folder to write, new or empty")


def run(config: Config) -> None:
    """Write the folder."""
    case = case_of(config)
    if config.backend == "ns3":
        write_ns3_folder(case, config.out)
    else:
        write_folder(case, config.backend, config.out, aggregation=config.network_aggregation)
    say(f"{case.num_npus} NPUs, {case.workload.name}, {case.plan.schedule}: {case.plan.placement}")
    why = why_only_ours(case, "unaware" if config.backend == "ns3" else config.backend)
    if why is not None:
        say(f"for our engine alone: {why}; the original fails, or gives other cycles")
    DOCUMENT.add(out=config.out, num_npus=case.num_npus, only_our_engine=why)
    say(f"written: {config.out} (its README.md has the command lines)")


def case_of(config: Config) -> PlacementCase:
    """Make the iteration that the flags describe.

    Raises
    ------
    ValueError
        If a flag is wrong, or a trace cannot hold the iteration.
    """
    topology = _steady(config.read_topology(), config.seed)
    workload = build_workload(
        config.model,
        num_layers=config.num_layers,
        num_microbatches=config.microbatches,
        microbatch_size=config.microbatch_size,
        sequence_length=config.sequence_length,
        recomputation=config.recomputation,
    )
    names = list(topology.index_of)
    placement = _even_parts(config, topology.num_domains, workload.num_layers)
    if config.placement is not None:
        placement = Placement.parse(config.placement, names)
    replicas = [] if config.replicas is None else config.replicas.split(";")
    plan = Plan(
        placement=placement,
        schedule=config.schedule,
        parallelism=_parallelism(config, topology.num_domains),
        replicas=tuple(Placement.parse(one, names) for one in replicas),
        shares=() if config.shares is None else parse_counts(config.shares, "shares"),
        activation_compression=config.activation_compression,
    )
    return PlacementCase(
        topology=topology, workload=workload, plan=plan, granularity=config.granularity
    )


def _even_parts(config: Config, num_domains: int, num_layers: int) -> Placement:
    """Even parts in a placement that the schedule can have."""
    if config.schedule != "interleaved_1f1b" or config.parallelism is not None:
        return Placement.even(num_domains, num_layers)
    parts = Placement.even(ROUNDS * num_domains, num_layers).domain_of_layer
    return Placement(domain_of_layer=tuple(part % num_domains for part in parts))


def _steady(topology: Topology, epoch_seed: int | None) -> Topology:
    """Links at their base figures, or at the start of an epoch; a replay has no base."""
    if epoch_seed is None and not isinstance(topology.dynamics, Replay):
        return topology
    found = snapshot(topology, epoch_seed or 0)
    if found is None:
        raise ValueError(f"--seed {epoch_seed}: a link is down at the start of that epoch")
    return found


def _parallelism(config: Config, num_domains: int) -> tuple[Parallelism, ...]:
    """Read one for all domains, or one for each."""
    if config.parallelism is None:
        if config.sharding != "none":
            raise UsageError("sharding needs a parallelism, got none")
        return ()
    each = tuple(
        replace(Parallelism.parse(item), sharding=config.sharding)
        for item in config.parallelism.split(",")
    )
    return each * num_domains if len(each) == 1 else each
