"""Runs that cannot continue or stall: they end as the original's do."""

import pytest
from astra_hand_figures import world_collective
from astra_runs import finishes, run
from astra_traces import (
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    Case,
    collective,
    compute,
    network_file,
    receive,
    send,
    system_file,
)

from astra_sim import AstraSimError, IncompleteRunError
from astra_sim.files.errors import AbortError, NodeError


def test_a_delay_of_nothing_aborts_at_time_0_only():
    ops = {"num_ops": 1, "tensor_size": 1}
    system = system_file(roofline_enabled=1)
    network = network_file("Ring", 2)
    late = [
        compute(0, 0, attributes={"num_ops": 9 * 10**9, "tensor_size": 10**6}),
        compute(1, 0, [0], attributes=ops),
    ]

    # 9000 operations a byte are bound by the peak of 900,000 a ns, one a byte by the memory.
    assert finishes(run(Case(ranks=[late] * 2, network=network, system=system))) == [10_000] * 2
    with pytest.raises(AbortError, match="event list: the first event must be due after time 0"):
        run(Case(ranks=[[compute(0, 0, attributes=ops)]] * 2, network=network, system=system))


@pytest.mark.parametrize(
    ("exit_code", "node", "parts"),
    [
        (134, send(0, 1, 100, -1), {}),
        (134, receive(0, 1, 0, 0), {}),
        (134, receive(0, 1, 100, 0, attributes={"comm_dst": 1}), {}),
        (134, send(0, 1, 100, 0, attributes={"comm_size": 100.0}), {}),
        (134, send(0, 1, 100, 0, attributes={"is_cpu_op": True}), {}),
        (134, collective(0, BARRIER, 100), {}),
        (134, collective(0, ALL_REDUCE, 100, group=1), {"groups": {1: (1, 2)}}),
        (134, collective(0, ALL_REDUCE, 100, attributes={"pg_name": 0}), {}),
        (1, collective(0, ALL_REDUCE, 100, group=7), {"groups": {1: (1, 2)}}),
        (1, collective(0, ALL_REDUCE, 100, attributes={"involved_dim": 1}), {}),
        (1, collective(0, ALL_TO_ALL, 100), {"system": system_file("halvingDoubling")}),
        (
            139,
            collective(0, ALL_REDUCE, 100),
            {"system": system_file("doubleBinaryTree"), "network": network_file("Ring", 3)},
        ),
        (
            139,
            collective(0, ALL_REDUCE, 100, group=1),
            {"system": system_file("doubleBinaryTree"), "groups": {1: (0, 1)}},
        ),
        (136, collective(0, ALL_REDUCE, 100), {"system": system_file(preferred_dataset_splits=0)}),
    ],
)
def test_what_cannot_be_run_at_time_0_ends_as_the_original_does(exit_code, node, parts):
    case = Case(**parts, ranks=[])
    (num_npus,) = case.network["npus_count"]
    ranks = [[node], *([compute(0, 1)] for _ in range(num_npus - 1))]

    with pytest.raises(AstraSimError) as caught:
        run(case.changed(ranks=ranks))
    assert caught.value.exit_code == exit_code


def test_a_node_that_cannot_be_run_later_ends_the_run_in_a_delivery_only():
    network = network_file("Ring", 2)
    after_computation = [compute(0, 1), collective(1, BARRIER, 100, [0])]
    after_message = [receive(0, 1, 100, 0), collective(1, BARRIER, 100, [0])]
    sender = [send(0, 0, 100, 0)]

    kept = run(Case(ranks=[after_computation, [compute(0, 9)]], network=network), strict=False)
    assert kept.unfinished == (0,)
    assert finishes(kept) == [9000]
    with pytest.raises(NodeError):
        run(Case(ranks=[after_message, sender], network=network), strict=False)


@pytest.mark.parametrize(
    ("num_npus", "system"),
    [
        (3, system_file("halvingDoubling")),
        (4, system_file(active_chunks_per_dimension=0)),
    ],
)
def test_collectives_that_stall_leave_their_ranks_unfinished(num_npus, system):
    network = network_file("Ring", num_npus)
    case = world_collective(ALL_REDUCE, num_npus=num_npus, network=network, system=system)

    result = run(case, strict=False)
    assert result.unfinished
    assert result.diagnosis
    with pytest.raises(IncompleteRunError):
        run(case)
