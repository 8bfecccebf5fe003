"""Write a folder that ASTRA-sim runs as it is: traces, network, system, and the command lines."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from calibration.cases.aggregation import Aggregation
from calibration.cases.case import PlacementCase
from calibration.cases.worlds import snapshot
from calibration.commands.console import say
from calibration.commands.flags import (
    DEFAULT_MODEL,
    MODELS,
    add_flag,
    add_world_flags,
    count,
    positive,
    seed,
    world_from_flags,
)
from calibration.reference.astra_config import Backend
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
from des.base.lazy import lazy
from des.job.transformer import Recomputation

if TYPE_CHECKING:
    from calibration.reference import export
else:
    export = lazy("calibration.reference.export")


EXAMPLES = """\
examples:
  python -m calibration export --out runs/trace
      Llama 2 70B in even parts on the default world, for the original's programs and our engine
  python -m calibration export --endpoints overlapped --backend pairwise --out runs/ours
      as many messages in flight as there are, every link its own: for our engine alone
  python -m calibration export --granularity gpu --parallelism 4x2x1 --backend unaware --out runs/g
      one NPU a GPU, four dividing the layers and two the microbatches
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add_world_flags(parser)
    parser.add_argument(
        "--backend",
        choices=get_args(Backend),
        default="aware",
        help="network that the folder is for (default: %(default)s)",
    )
    parser.add_argument(
        "--network-aggregation",
        choices=get_args(Aggregation),
        default="harmonic",
        help="how unequal links become one for unaware and aware (default: %(default)s)",
    )
    for flag, kind, default, explanation in (
        ("--model", str, DEFAULT_MODEL, f"one of {MODELS}"),
        ("--num-layers", count, None, "divide the model into that many equal layers"),
        ("--placement", str, None, "domain times layers, such as 0*28,1*26,2*26; without it even"),
        ("--replicas", str, None, "placements of further replicas, separated by semicolons"),
        ("--schedule", str, DEFAULT_SCHEDULE, f"one of {', '.join(SCHEDULES)}"),
        ("--parallelism", str, None, "tensor x data x pipeline, for all domains or one for each"),
        ("--activation-compression", positive, "1.0", "factor by which messages shrink"),
        ("--microbatches", count, "32", "microbatches of an iteration"),
        ("--microbatch-size", count, "1", "sequences of a microbatch"),
        ("--sequence-length", count, "4096", "tokens of a sequence"),
        ("--recomputation", str, "flash", f"one of {', '.join(get_args(Recomputation))}"),
        ("--seed", seed, None, "draw an epoch of the links; without it their base figures"),
    ):
        add_flag(parser, flag, kind, default, explanation)
    parser.set_defaults(endpoints="one_in_flight")  # the original's rule, whatever the network has
    parser.add_argument("--out", type=Path, required=True, help="folder to write, new or empty")


def run(arguments: argparse.Namespace) -> int:
    """Write the folder."""
    case = case_of(arguments)
    export.write_folder(
        case, arguments.backend, arguments.out, aggregation=arguments.network_aggregation
    )
    say(f"{case.num_npus} NPUs, {case.workload.name}, {case.plan.schedule}: {case.plan.placement}")
    why = export.why_only_ours(case, arguments.backend)
    if why is not None:
        say(f"for our engine alone: {why}; the original fails, or gives other cycles")
    say(f"written: {arguments.out} (its README.md has the command lines)")
    return 0


def case_of(arguments: argparse.Namespace) -> PlacementCase:
    """Make the iteration that the flags describe.

    Raises
    ------
    ValueError
        If a flag is wrong, or a trace cannot hold the iteration.
    """
    topology = _steady(world_from_flags(arguments), arguments.seed)
    workload = build_workload(
        arguments.model,
        num_layers=arguments.num_layers,
        num_microbatches=arguments.microbatches,
        microbatch_size=arguments.microbatch_size,
        sequence_length=arguments.sequence_length,
        recomputation=arguments.recomputation,
    )
    names = list(topology.index_of)
    placement = Placement.even(topology.num_domains, workload.num_layers)
    if arguments.placement is not None:
        placement = Placement.parse(arguments.placement, names)
    replicas = [] if arguments.replicas is None else arguments.replicas.split(";")
    plan = Plan(
        placement=placement,
        schedule=arguments.schedule,
        parallelism=_parallelism(arguments.parallelism, topology.num_domains),
        replicas=tuple(Placement.parse(one, names) for one in replicas),
        activation_compression=arguments.activation_compression,
    )
    return PlacementCase(
        topology=topology, workload=workload, plan=plan, granularity=arguments.granularity
    )


def _steady(topology: Topology, epoch_seed: int | None) -> Topology:
    """Links at their base figures, or at the start of an epoch; a replay has no base."""
    if epoch_seed is None and not isinstance(topology.dynamics, Replay):
        return topology
    found = snapshot(topology, epoch_seed or 0)
    if found is None:
        raise ValueError(f"--seed {epoch_seed}: a link is down at the start of that epoch")
    return found


def _parallelism(text: str | None, num_domains: int) -> tuple[Parallelism, ...]:
    if text is None:
        return ()
    each = tuple(Parallelism.parse(item) for item in text.split(","))
    return each * num_domains if len(each) == 1 else each
