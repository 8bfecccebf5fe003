"""Messages on links that change, by hand, and iterations that the recurrence does not foresee."""

import dataclasses

import pytest
from foreseen_iterations import simulate_foreseeable
from recurrence_cases import assert_equal, assert_foreseen
from sending import moving, with_transport
from strategies import plan, unit_workload, world

from des import Movement, Parallelism, StarvationError, simulate
from des.compiled.eligibility import is_foreseeable
from des.dynamics import LinkSeries, Replay


def two_domains(**links):
    return world("AB", {"AB": (1.0, 1.0), "BA": (1.0, 1.0)} | links)


def two_stages(num_microbatches=1, message_bytes=4.0):
    return unit_workload(
        [(1, 2)] * 2, num_microbatches=num_microbatches, message_bytes=message_bytes
    )


def test_a_message_crosses_a_change_of_its_link_by_hand():
    """4 bytes from 1 s on: 2 at 1 byte/s until 3 s, 2 at 2 bytes/s; then 3 s of flight: 7 s.

    B then computes for 3 s, and its 4 bytes take 2 s and fly for 3 s: A continues at 15 s.
    """
    topology = moving(two_domains(), (3.0, 2.0, 3.0))

    found = simulate_foreseeable(topology, two_stages(), plan(0, 1))
    assert found.transfers.tolist() == [[[1.0, 4.0, 7.0]], [[10.0, 12.0, 15.0]]]
    assert found.spans.tolist() == [[0.0, 1.0], [15.0, 17.0], [7.0, 8.0], [8.0, 10.0]]
    assert found.makespan_s == 17.0
    assert found.busy_s.tolist() == [3.0, 3.0]
    assert found.wire_busy_s.tolist() == [3.0, 2.0]


@pytest.mark.parametrize(
    ("ready_s", "num_bytes", "bandwidth", "change_s"),
    [
        # It ends after the change, and yet all of it fits into the time before.
        (2.030152440741723, 21.215814392343916, 4.551227390341859, 6.691711306678834),
        # It ends at the change, and yet a part of it does not fit into the time before.
        (3.0, 4.0, 1.9, 5.105263157894736),
    ],
)
def test_a_message_is_through_when_its_link_slows_down_rounding_aside(
    ready_s, num_bytes, bandwidth, change_s
):
    """What rounding has left over or short counts for nothing, though the link is slow then."""
    topology = moving(two_domains(AB=(bandwidth, 1.0)), (change_s, 0.001, 1.0))
    workload = unit_workload(
        [(ready_s, 1.0), (1.0, 1.0)], num_microbatches=1, message_bytes=num_bytes
    )
    rest = num_bytes - (change_s - ready_s) * bandwidth
    assert rest != 0.0
    assert (ready_s + num_bytes / bandwidth > change_s) == (rest < 0.0)

    found = simulate_foreseeable(topology, workload, plan(0, 1))
    assert found.transfers[0, 0, 1] == change_s
    assert_equal(found, simulate(topology, workload, plan(0, 1)))


@pytest.mark.parametrize(("num_steps", "is_enough"), [(200, True), (3000, False)])
def test_courses_of_many_pieces_are_extended_up_to_a_limit(num_steps, is_enough):
    """A message of 40 bytes sees about 400 changes, or thousands."""
    gap_s = 20.0 / num_steps
    steps = [(gap_s * step, 1.0 + step % 2, 1.0) for step in range(1, num_steps)]
    case = moving(two_domains(), *steps), two_stages(message_bytes=40.0), plan(0, 1)

    if is_enough:
        assert_foreseen(*case)
    else:
        assert simulate_foreseeable(*case) is None


def test_a_link_that_never_comes_back_ends_nothing():
    case = moving(two_domains(), (2.0, 0.0, 1.0)), two_stages(), plan(0, 1)

    assert simulate_foreseeable(*case) is None
    with pytest.raises(StarvationError, match="link A->B: is down for ever from 2 s on"):
        simulate(*case)


def trace(end_s):
    """Steady links until a time, when the trace ends."""
    series = (
        LinkSeries(
            source=ends[0],
            target=ends[1],
            times_s=(0.0, end_s),
            bandwidths_bytes_per_s=(1.0, 1.0),
            latencies_s=(1.0, 1.0),
        )
        for ends in ("AB", "BA")
    )
    return Replay(name="trace.csv", series=tuple(series))


def test_a_trace_must_cover_what_is_sent_and_nothing_more():
    """The last message leaves at 13 s."""
    case = two_stages(), plan(0, 1)
    short, long = (
        dataclasses.replace(two_domains(), movement=Movement(law=trace(end_s), seed=0))
        for end_s in (13.0, 13.5)
    )

    assert simulate_foreseeable(short, *case) is None
    with pytest.raises(ValueError, match="trace must cover the run"):
        simulate(short, *case)
    assert_foreseen(long, *case)


FORESEEABLE = (
    world("ABC", dict.fromkeys(("AB", "BA", "BC", "CB", "AC"), (1.0, 1.0))),
    unit_workload([(1, 2)] * 4, num_microbatches=2, message_bytes=1.0),
    plan(0, 1, 1, 2),
)


def with_gpus(topology):
    """Four GPUs in each domain."""
    domains = tuple(dataclasses.replace(domain, num_gpus=4) for domain in topology.domains)
    return dataclasses.replace(topology, domains=domains)


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        ({"sharing": "fair"}, {}),
        ({"sharing": "none"}, {}),
        ({"endpoints": "one_in_flight"}, {}),
        ({"endpoints": "blocking"}, {}),
        ({"half_duplex": True}, {}),
        ({}, {"schedule": "greedy"}),
        ({}, {"placement": plan(0, 1, 0, 2).placement}),  # a device has two stages
        ({}, {"placement": plan(0, 0, 2, 2).placement}),  # no direct link back
        ({}, {"placement": plan(0, 0, 1, 1).placement, "replicas": (plan(2, 2, 2, 2).placement,)}),
        ({}, {"parallelism": (Parallelism(data=2),) * 3}),  # sums up gradients
    ],
)
def test_anything_that_could_change_an_order_is_noticed(rules, fields):
    topology, _, chosen = FORESEEABLE
    assert is_foreseeable(topology, chosen)
    assert is_foreseeable(
        with_gpus(topology),
        dataclasses.replace(chosen, parallelism=(Parallelism(tensor=2),) * 3),
    )

    topology = with_gpus(with_transport(topology, **rules))
    assert not is_foreseeable(topology, dataclasses.replace(chosen, **fields))
