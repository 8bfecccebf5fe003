"""Collectives: which phases their chunks go through, and how they are cut into chunks."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from astra_sim.base.values import replace
from astra_sim.files.errors import AbortError, AstraSimError, CrashError, DivisionError, NodeError
from astra_sim.files.execution_trace import CollectiveType
from astra_sim.files.network_config import NetworkConfig
from astra_sim.files.system_config import Algorithm, SystemConfig
from astra_sim.system.chunks import Chunk, CollectiveRun
from astra_sim.system.npu import Npu, Share
from astra_sim.system.phases import Phase, PhasePlan
from astra_sim.system.repeats import RepeatedPhases

CHUNK_TAG_OFFSET = 500_000_000
"""Tags of chunks begin here; those of send and receive nodes stay below."""

WORLD = 0
"""Number of the group of all NPUs."""

ALL_REDUCE, ALL_GATHER = CollectiveType.ALL_REDUCE, CollectiveType.ALL_GATHER
REDUCE_SCATTER, ALL_TO_ALL = CollectiveType.REDUCE_SCATTER, CollectiveType.ALL_TO_ALL


class Collective(NamedTuple):
    """Request of a node to the system; ``involved`` says which dimensions take part."""

    kind: CollectiveType
    num_bytes: int
    group: int
    involved: tuple[bool, ...]


class Collectives:
    """Plans of all collectives of a system; an NPU's plan is made once for each kind."""

    def __init__(
        self,
        network: NetworkConfig,
        system: SystemConfig,
        groups: Mapping[int, tuple[int, ...]],
        repeats: RepeatedPhases | None = None,
    ) -> None:
        self._network = network
        self._num_npus = network.num_npus
        self._system = system
        self._groups = groups
        self._repeats = repeats
        self._plans: dict[tuple[Any, ...], tuple[PhasePlan, ...]] = {}
        self._phases: dict[tuple[Any, ...], tuple[Phase, ...]] = {}
        """Phases of every chunk of a plan, where nothing is chosen when it is made."""
        self._rings: dict[tuple[int, ...], tuple[int, ...]] = {}
        """Members of each ring: the same object for all of them."""
        self._algorithms = system.algorithms

    def start(
        self, npu: Npu, collective: Collective, done: Callable[[Any], None], argument: Any
    ) -> None:
        """Make a collective's chunks on one NPU; ``done(argument)`` is called when all are through.

        A collective with nothing to do, in a group of one or with no dimension involved, never
        completes.

        Raises
        ------
        NodeError
            If the kind has no algorithms.
        AstraSimError
            If the group is unknown or does not have this NPU, an algorithm cannot do the kind,
            or the data cannot be cut.
        """
        key = npu.rank, collective.kind, collective.group, collective.involved
        plans = self._plans.get(key)
        if plans is None:
            plans = self._plans[key] = self._make_plans(npu.rank, collective)
        chunk_bytes, num_chunks = self._cut(collective)
        if not plans:
            return
        run = CollectiveRun(num_chunks, done, argument)
        for _ in range(num_chunks):
            number = npu.next_chunk_id(collective.group)
            chunk = Chunk(
                npu,
                run,
                tag=CHUNK_TAG_OFFSET + number % CHUNK_TAG_OFFSET,
                num_bytes=chunk_bytes,
                phases=self._phases.get(key) or self._choose(npu, plans, key),
                repeats=self._repeats,
            )
            chunk.enter_queue()

    def _cut(self, collective: Collective) -> tuple[int, int]:
        """Bytes of a chunk and number of chunks; the last chunk is of full size, too."""
        splits = self._system.preferred_dataset_splits
        if splits <= 0:
            raise DivisionError(
                "preferred-dataset-splits: must be at least 1 where there are collectives, "
                f"got {splits}"
            )
        num_bytes = collective.num_bytes
        chunk_bytes = num_bytes // splits
        if collective.kind is ALL_GATHER:
            if not chunk_bytes:
                raise AstraSimError(
                    f"all-gather: must have at least preferred-dataset-splits ({splits}) bytes, "
                    f"got {num_bytes}"
                )
        elif chunk_bytes < self._num_npus:
            chunk_bytes = self._num_npus
            num_bytes = splits * chunk_bytes
        return chunk_bytes, -(-num_bytes // chunk_bytes)

    def _choose(
        self, npu: Npu, plans: tuple[PhasePlan, ...], key: tuple[Any, ...]
    ) -> tuple[Phase, ...]:
        phases = tuple(_chosen(npu, plan, key[1]) for plan in plans)
        if npu.settings.num_queues == 1 and not any(map(_is_tree, plans)):
            self._phases[key] = phases
        return phases

    def _make_plans(self, rank: int, collective: Collective) -> tuple[PhasePlan, ...]:
        kind, involved = collective.kind, collective.involved
        if collective.group != WORLD:
            members = self._members(collective.group, rank)
            if len(members) < self._num_npus:
                return self._group_plans(kind, members, rank)
            involved = (True,) * len(self._network.dimensions)
        dimensions = [
            self._dimension_plan(kind, algorithm, dimension, rank)
            for dimension, algorithm in enumerate(self._logical_dimensions(kind))
        ]
        if len(involved) < len(dimensions):
            raise AstraSimError(
                f"involved_dim: must have a flag for each of {len(dimensions)} dimensions, "
                f"got {len(involved)}"
            )
        taking_part = [plan for plan in dimensions if involved[plan.dimension]]
        if kind is ALL_GATHER:
            return tuple(reversed(taking_part))
        if kind is ALL_REDUCE and self._is_bandwidth_aware():
            return _bandwidth_aware(taking_part)
        return tuple(taking_part)

    def _logical_dimensions(self, kind: CollectiveType) -> tuple[Algorithm, ...]:
        """Algorithms by dimension; one over the whole system ends the list."""
        algorithms = self._algorithms[kind]
        if not algorithms:
            raise NodeError(f"{kind.name}: the system file must list its implementation, got none")
        for dimension, algorithm in enumerate(algorithms):
            if algorithm.whole_system:
                return algorithms[: dimension + 1]
        return algorithms

    def _dimension_plan(
        self, kind: CollectiveType, algorithm: Algorithm, dimension: int, rank: int
    ) -> PhasePlan:
        _require_possible(kind, algorithm)
        members = (
            tuple(range(self._num_npus))
            if algorithm.whole_system
            else self._network.neighbours(rank, dimension)
        )
        return _plan_of(kind, algorithm, dimension, self._rings.setdefault(members, members), rank)

    def _group_plans(
        self, kind: CollectiveType, members: tuple[int, ...], rank: int
    ) -> tuple[PhasePlan, ...]:
        """One ring in the listed order, in the queues of dimension 0."""
        algorithms = self._algorithms[kind]
        if not algorithms:
            self._logical_dimensions(kind)
        algorithm = algorithms[0] if len(algorithms) == 1 else Algorithm(name="ring")
        _require_possible(kind, algorithm)
        if algorithm.name == "doubleBinaryTree":
            raise CrashError(
                "pg_name: a group smaller than the system must not use doubleBinaryTree"
            )
        if len(members) < 2:
            return ()
        lower = kind is ALL_REDUCE and self._is_bandwidth_aware()
        plan = _plan_of(kind, replace(algorithm, whole_system=False), 0, members, rank)
        return (replace(plan, share=Share.LOWER if lower else Share.WHOLE, is_part=True),)

    def _members(self, group: int, rank: int) -> tuple[int, ...]:
        members = self._groups.get(group)
        if members is None:
            raise AstraSimError(
                f"pg_name: must be one of the communicator groups {sorted(self._groups)}, "
                f"got {group}"
            )
        if not all(0 <= member < self._num_npus for member in members):
            raise AbortError(
                f"communicator group {group}: ranks must be within [0, {self._num_npus}), "
                f"got {list(members)}"
            )
        if rank not in members:
            raise AbortError(f"pg_name: NPU {rank} is not in communicator group {group}")
        return members

    def _is_bandwidth_aware(self) -> bool:
        optimization = self._system.collective_optimization
        if optimization is None:
            raise AstraSimError(
                "collective-optimization: must be baseline or localBWAware where there are "
                "all-reduces, got nothing"
            )
        return optimization == "localBWAware"


def _plan_of(
    kind: CollectiveType, algorithm: Algorithm, dimension: int, members: tuple[int, ...], rank: int
) -> PhasePlan:
    return PhasePlan(
        kind=kind,
        algorithm=algorithm,
        dimension=dimension,
        share=Share.WHOLE,
        members=members,
        position=members.index(rank),
    )


def _bandwidth_aware(plans: list[PhasePlan]) -> tuple[PhasePlan, ...]:
    """Reduce-scatter up to the last dimension, all-reduce there, all-gather back down."""
    if not plans:
        return ()
    *firsts, last = (replace(plan, share=Share.LOWER) for plan in plans)
    return (
        *(replace(plan, kind=REDUCE_SCATTER) for plan in firsts),
        last,
        *(replace(plan, kind=ALL_GATHER, share=Share.UPPER) for plan in reversed(firsts)),
    )


def _require_possible(kind: CollectiveType, algorithm: Algorithm) -> None:
    if algorithm.name == "halvingDoubling" and kind is ALL_TO_ALL:
        raise AstraSimError(
            "all-to-all-implementation: must be ring, direct or doubleBinaryTree, "
            "got halvingDoubling"
        )


def _is_tree(plan: PhasePlan) -> bool:
    return plan.algorithm.name == "doubleBinaryTree"


def _chosen(npu: Npu, plan: PhasePlan, kind: CollectiveType) -> Phase:
    """Queue, direction and tree of a new chunk's phase, from counters of its NPU."""
    queue, is_up = npu.take_queue(plan.dimension, plan.share)
    return Phase(plan, queue, is_up, npu.next_tree(kind, plan.dimension) if _is_tree(plan) else 0)
