"""Ranks laid over sites: the sites that each replica passes, and the plan's parts on them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from des import Parallelism, Placement, Topology
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
