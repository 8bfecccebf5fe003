"""Rings whose members go in step: one event for all changes no result.

The same network with a change of bandwidth after the end of the run is the oracle: there every
member has events of its own, as its rates are not constant.
"""

import pytest
from astra_hand_figures import ONE_BYTE_PER_NS
from astra_runs import run
from astra_traces import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    Case,
    Node,
    collective,
    compute,
    network_file,
    receive,
    send,
    system_file,
)
from astra_workloads import cases
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_sim import RunOptions, RunResult
from astra_sim.system.rings import RingExchange

NEVER = [{"time_ns": 10**15, "bandwidth": 123.0, "dimension": 0}]
KINDS = [ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER]


def all_of(result: RunResult) -> tuple[object, ...]:
    """What a run tells, the order in which nodes were completed and the events among it."""
    spans = [[(one.node.id, one.start_ns, one.end_ns) for one in rank] for rank in result.spans]
    return result.ranks, result.unfinished, result.num_events, result.lines, spans


def one_by_one(case: Case) -> Case:
    """The case with a network on which no ring goes in step."""
    last = len(case.network["npus_count"])
    changes = [change | {"dimension": number} for number in range(last) for change in NEVER]
    return case.changed(network=case.network | {"bandwidth_changes": changes})


@settings(max_examples=examples(80))
@given(data=st.data())
def test_any_workload_is_as_with_events_for_every_member(data):
    case = data.draw(cases("unaware"))
    options = RunOptions(num_queues_per_dimension=data.draw(st.integers(1, 2)))

    assert all_of(run(case, options=options)) == all_of(run(one_by_one(case), options=options))


def rank_nodes(kind: int, start_us: int, durations_us: list[int]) -> list[Node]:
    """Two collectives after a start, and computations one after the other meanwhile."""
    begins = [compute(0, start_us)] if start_us else []
    first = [0] if begins else []
    computations = [
        compute(number, duration_us, [number - 1] if number > 1 else first)
        for number, duration_us in enumerate(durations_us, start=1)
    ]
    joins = [collective(100, kind, 8000, first), collective(101, kind, 8000, [100])]
    return [*begins, *computations, *joins]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(40))
@given(
    durations_us=st.lists(st.lists(st.integers(1, 7), max_size=6), min_size=4, max_size=4),
    starts_us=st.lists(st.sampled_from([0, 0, 0, 1, 3]), min_size=4, max_size=4),
    memory=st.sampled_from([0, 1.0, 0.5]),
    message=st.booleans(),
)
def test_other_timers_at_the_same_ticks_join_those_of_the_ring(
    kind, durations_us, starts_us, memory, message
):
    """Moves, messages and reductions last whole microseconds, as computations beside them do."""
    network = network_file("FullyConnected", 4, ONE_BYTE_PER_NS, 1000.0)
    system = system_file(endpoint_delay=1000, preferred_dataset_splits=2, local_mem_bw=memory)
    ranks = [
        rank_nodes(kind, start_us, durations)
        for start_us, durations in zip(starts_us, durations_us, strict=True)
    ]
    if message:
        ranks[1].append(receive(200, 0, 1000, 1))
        ranks[0].append(send(200, 1, 1000, 1, [101]))
    case = Case(ranks=ranks, network=network, system=system)

    assert all_of(run(case, strict=False)) == all_of(run(one_by_one(case), strict=False))


GRID = {
    "topology": ["Ring", "Switch"],
    "npus_count": [4, 3],
    "bandwidth": [50.0, 25.0],
    "latency": [500.0, 700.0],
}
PAIRS = {number: [2 * number - 2, 2 * number - 1] for number in range(1, 7)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("starts_us", [[5], [5, 5, 5, 7]])
@pytest.mark.parametrize("groups", [{}, PAIRS])
def test_rings_that_start_together_need_no_exchange_of_a_member(
    kind, starts_us, groups, monkeypatch
):
    """All rings of a dimension, or of several groups, as long as they do nothing else."""
    made = []
    whole = RingExchange.__init__

    def counted(self, run, shape):
        made.append(run)
        whole(self, run, shape)

    monkeypatch.setattr(RingExchange, "__init__", counted)
    ranks = [
        [
            compute(0, starts_us[rank // 2 % len(starts_us)]),
            collective(1, kind, 2**20, [0], group=rank // 2 + 1 if groups else None),
        ]
        for rank in range(12)
    ]
    system = system_file(preferred_dataset_splits=5)
    case = Case(ranks=ranks, network=GRID, system=system, groups=groups)

    together = all_of(run(case))
    assert bool(made) == (not groups and len(starts_us) > 1)
    assert together == all_of(run(one_by_one(case)))
