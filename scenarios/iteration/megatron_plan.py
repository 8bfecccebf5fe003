"""Plan and workload of a command line of Megatron-LM, and paths of ranks through the sites."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from agents.decision.bound_plan import server_counts
from agents.trainers.megatron import MEGATRON
from agents.trainers.megatron_arguments import MegatronCommand
from des import GradientExchange, Parallelism, Placement, Plan, Topology, Workload
from des.job.architecture import Architecture
from des.job.models import build_workload
from des.plan.parallelism import UNSHARED, ChunkOrder

Path = tuple[int, ...]
"""Domain of each rank of a pipeline."""


def paths_of_ranks(
    sites: Sequence[int], *, group: int, pipeline: int, replica_order: bool
) -> tuple[tuple[Path, ...], int]:
    """Return the paths of the replicas through the sites, and how many replicas take each.

    ``sites`` has the domain of each rank. Groups of ranks in a row form a stage of all replicas,
    one after the other, or with ``replica_order`` the stages of a replica.

    Raises
    ------
    ValueError
        If a group lies in several sites, or paths are taken by unequal numbers of replicas.

    Examples
    --------
    >>> paths_of_ranks([0, 0, 1, 1], group=1, pipeline=2, replica_order=False)
    (((0, 1),), 2)
    >>> paths_of_ranks([0, 0, 1, 1], group=1, pipeline=2, replica_order=True)
    (((0, 0), (1, 1)), 1)
    """
    num_replicas, rest = divmod(len(sites), group * pipeline)
    if rest or not num_replicas:
        raise ValueError(
            f"hosts: GPUs must be a multiple of tensor x pipeline x context, {group * pipeline}; "
            f"got {len(sites)}"
        )
    counts: Counter[Path] = Counter()
    for replica in range(num_replicas):
        path: list[int] = []
        for stage in range(pipeline):
            place = replica * pipeline + stage if replica_order else stage * num_replicas + replica
            own = set(sites[place * group : (place + 1) * group])
            if len(own) > 1:
                raise ValueError(
                    f"hosts: stage {stage} of replica {replica} must lie in one site; got ranks "
                    f"{place * group} to {(place + 1) * group - 1} in {len(own)}, which the "
                    "trainer would not notice"
                )
            path += own
        counts[tuple(path)] += 1
    if len(set(counts.values())) > 1:
        raise ValueError(
            "hosts: replicas of each set of sites must be equally many; got "
            f"{sorted(counts.values())}"
        )
    return tuple(counts), next(iter(counts.values()))


def placement_on_path(
    path: Path, stage_layers: Sequence[int], order: ChunkOrder = "loop"
) -> Placement:
    """Place stages on a path, chunk by chunk: round and round, or there and back."""
    back = path[::-1] if order == "wave" else path
    chunks = range(len(stage_layers) // len(path))
    passed = [domain for chunk in chunks for domain in (back if chunk % 2 else path)]
    return Placement.of_stages(list(zip(passed, stage_layers, strict=True)))


def parallelism_on_paths(
    topology: Topology,
    paths: Sequence[Path],
    own: Parallelism,
    num_chunks: int,
    order: ChunkOrder = "loop",
) -> tuple[Parallelism, ...]:
    """Return the division of work of each domain; one that holds a whole path has its chunks."""
    found = [UNSHARED] * topology.num_domains
    for path in paths:
        for domain in dict.fromkeys(path):
            found[domain] = replace(own, pipeline=path.count(domain))
            if len(set(path)) == 1 and num_chunks > 1:
                found[domain] = replace(found[domain], chunks=num_chunks, chunk_order=order)
    return tuple(found)


def megatron_plan(
    command: MegatronCommand, topology: Topology, sites: Sequence[int]
) -> tuple[Plan, int]:
    """Return the plan of a command on sites in order, and the data ranks of a stage in each.

    Ranks are numbered GPU by GPU over the sites. Consecutive ones form a stage of all replicas, or
    a replica, see `MegatronCommand.replica_order`.

    Raises
    ------
    ValueError
        If the GPUs or sequences do not divide as Megatron-LM needs it, or a stage would lie in
        several sites.
    """
    ranks = _ranks(command, topology, sites)
    size = command.tensor * command.context * command.pipeline
    if len(ranks) % size:
        raise ValueError(
            f"world size must be a multiple of tensor x pipeline x context, {size}; "
            f"got {len(ranks)} GPUs"
        )
    num_replicas = len(ranks) // size
    _check_batch(command, num_replicas)
    of_path = (
        _replicas_in_a_row(command, topology, ranks)
        if command.replica_order
        else {_stages_in_a_row(command, topology, ranks): num_replicas}
    )
    data = set(of_path.values())
    if len(data) > 1:
        raise ValueError(f"replicas of each set of sites must be equally many; got {sorted(data)}")
    return plan_of_paths(command, topology, list(of_path), data.pop()), num_replicas // len(of_path)


def _ranks(command: MegatronCommand, topology: Topology, sites: Sequence[int]) -> list[int]:
    """Domain of each rank."""
    found = [site for site in sites for _ in range(topology.domains[site].num_gpus)]
    if command.num_gpus is None:
        return found
    if command.num_gpus > len(found):
        raise ValueError(
            f"--nnodes x --nproc-per-node must be at most the {len(found)} GPUs of the sites; "
            f"got {command.num_gpus}"
        )
    return found[: command.num_gpus]


def _check_batch(command: MegatronCommand, data_parallel: int) -> None:
    size = command.micro_batch_size * data_parallel
    if command.global_batch_size % size:
        raise ValueError(
            f"--global-batch-size: must be a multiple of micro-batch size "
            f"{command.micro_batch_size} x data-parallel size {data_parallel}, {size}; "
            f"got {command.global_batch_size}"
        )


def _domain_of(ranks: Sequence[int], topology: Topology, what: str) -> int:
    """Domain that ranks have in common."""
    found = list(dict.fromkeys(ranks))
    if len(found) > 1:
        names = " and ".join(topology.domains[one].name for one in found)
        raise ValueError(f"{what} of {len(ranks)} GPUs must lie in one site; got {names}")
    return found[0]


def _stages_in_a_row(command: MegatronCommand, topology: Topology, ranks: Sequence[int]) -> Path:
    size = len(ranks) // command.pipeline
    return tuple(
        _domain_of(ranks[stage * size : (stage + 1) * size], topology, f"stage {stage}")
        for stage in range(command.pipeline)
    )


def _replicas_in_a_row(
    command: MegatronCommand, topology: Topology, ranks: Sequence[int]
) -> dict[Path, int]:
    """Replicas of each path through the sites."""
    size = command.tensor * command.context
    of_path: dict[Path, int] = {}
    for first in range(0, len(ranks), size * command.pipeline):
        path = tuple(
            _domain_of(
                ranks[at : at + size], topology, f"stage {(at - first) // size} of a replica"
            )
            for at in range(first, first + size * command.pipeline, size)
        )
        of_path[path] = of_path.get(path, 0) + 1
    for path, count in of_path.items():
        for domain in set(path) if count > 1 and command.pipeline > 1 else ():
            name, (_, per_server) = (
                topology.domains[domain].name,
                server_counts(topology.domains[domain]),
            )
            if size % per_server:
                raise ValueError(
                    "--use-tp-pp-dp-mapping: tensor x context must be a multiple of the "
                    f"{per_server} GPUs of a server where a site has several replicas; got {size} "
                    f"in {name}"
                )
    return of_path


def plan_of_paths(
    command: MegatronCommand, topology: Topology, paths: Sequence[Path], data: int
) -> Plan:
    """Return the plan of a command whose sets of replicas pass these sites.

    Raises
    ------
    ValueError
        If the optimiser has instances other than these sets.
    """
    instances = command.optimiser_instances
    if instances not in (1, len(paths)):
        raise ValueError(
            "--num-distributed-optimizer-instances: must be 1 or the "
            f"{len(paths)} sets of sites with replicas; got {instances}"
        )
    own = Parallelism(
        tensor=command.tensor,
        data=data,
        context=command.context,
        expert=command.expert,
        whole_experts=command.whole_experts,
        sharding="optimiser" if command.shards_optimiser else "none",
        sequence_parallel=command.sequence_parallel,
    )
    placements = [placement_on_path(path, command.stage_layers) for path in paths]
    return Plan(
        placement=placements[0],
        replicas=tuple(placements[1:]),
        schedule=command.schedule,
        parallelism=parallelism_on_paths(topology, paths, own, command.num_chunks),
        exchange=GradientExchange(
            overlapped=command.overlaps_gradients,
            sharded=command.shards_optimiser and len(paths) > 1 and instances == 1,
        ),
        sends=MEGATRON.sends_under(command.schedule),
    )


def megatron_workload(command: MegatronCommand, own: Architecture, size: int) -> Workload:
    """Workload of a command line: ``size`` sequences of all copies together in a microbatch."""
    return build_workload(
        own,
        num_layers=command.num_layers,
        num_microbatches=command.global_batch_size // size,
        microbatch_size=size,
        sequence_length=command.sequence_length,
        recomputation=command.recomputation,
        attention=command.attention,
        precision=command.precision,
        gradient_precision=command.gradient_precision,
    )
