"""Events at the same time: messages first, then workers, members and media, by number."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import movements
from sending import Sent, deliver, transports, with_transport
from sharing import FEW, equal_world, model, parallel_cases, replicas, sums
from strategies import FREE_BANDWIDTH_BYTES_PER_S, free_world, plan, unit_workload, world

from des import GradientExchange, Parallelism, Topology, simulate
from des.clock import Clock, Message, Moment
from des.compiled.simulate import simulate_compiled
from des.costs.feasibility import assign

FREE = (FREE_BANDWIDTH_BYTES_PER_S, 0.0)


ENGINES = pytest.mark.parametrize("simulator", [simulate, simulate_compiled])


def starts_s(simulator, topology, workload, stage):
    """Starts of the forward passes of a stage, pattern A, B, A, gpipe."""
    spans = simulator(topology, workload, plan(0, 1, 0, schedule="gpipe")).spans
    return [span.start_s for span in spans if (span.stage, span.kind) == (stage, "F")]


def test_equal_times_go_by_rank_and_not_by_who_was_queued_first():
    """SimPy's own events, with which processes start, come before all ranks."""
    clock, seen = Clock(), []

    def start():
        seen.append("process")
        yield clock.at(2.0)

    late, early = Message(clock, 1, 7), Moment(clock, 5)
    clock.at(0.0, 9).callbacks.append(lambda _: seen.append("at"))
    for name, moment in (("late", late), ("early", early)):
        moment.callbacks.append(lambda _, name=name: seen.append(name))
        moment.happen_at(0.0)
    clock.process(start())
    clock.run_out()
    assert seen == ["process", "early", "at", "late"]
    assert clock.now == 2.0


def test_nothing_can_be_let_happen_in_the_past():
    clock = Clock()
    clock.at(2.0)
    clock.run_out()

    with pytest.raises(AssertionError, match=r"1\.0 is past, it is 2\.0"):
        clock.at(1.0)
    with pytest.raises(AssertionError, match=r"1\.0 is past, it is 2\.0"):
        Moment(clock, 1).happen_at(1.0)


@ENGINES
def test_a_message_arrives_before_a_worker_asks_by_hand(simulator):
    """Pattern A, B, A, gpipe; A forwards 2 s, B 1 s, and from B to A 1 s.

    At 4 stage 0 has done F1, and F0 of stage 2 is there: A does that first.
    """
    topology = world("AB", {"AB": FREE, "BA": (FREE_BANDWIDTH_BYTES_PER_S, 1.0)})
    workload = unit_workload([(2, 1), (1, 1), (2, 1)], num_microbatches=3)

    assert starts_s(simulator, topology, workload, 0) == [0, 2, 6]
    assert starts_s(simulator, topology, workload, 2) == [4, 8, 10]


@ENGINES
def test_of_two_workers_the_first_asks_first_by_hand(simulator):
    """Pattern A, B, A, gpipe, all forwards 1 s, free links.

    At 2 stage 0 has done F1 and asks for F2; then B has done F0, which it sends to stage 2.
    """
    workload = unit_workload([(1, 1)] * 3, num_microbatches=3)

    assert starts_s(simulator, free_world(2), workload, 0) == [0, 1, 2]
    assert starts_s(simulator, free_world(2), workload, 2) == [3, 4, 5]


@pytest.mark.parametrize("sharing", ["fifo", "fair", "none"])
def test_of_two_messages_at_a_border_the_first_goes_first(sharing):
    """Both are at C at 2; the second was under way first. Under fair sharing both leave at 4.

    Where none waits for another both leave at 3.
    """
    ends = {"AC": (1e300, 1.0), "BC": (1e300, 2.0), "CD": (4.0, 0.0)}
    topology = with_transport(world("ABCD", ends), sharing=sharing)
    messages = [Sent(1.0, 4.0, (0, 2)), Sent(0.0, 4.0, (1, 2))]

    found = deliver(topology, messages)
    last = [hops[-1][4:6] for hops in found.hops]
    expected = {"fifo": [(2, 3), (3, 4)], "fair": [(2, 4), (2, 4)], "none": [(2, 3), (2, 3)]}
    assert last == expected[sharing]


def test_members_of_exchanges_ask_in_order_by_hand():
    """Both buckets of a device are ready at once, at the end: the last layers go first.

    A layer is 20 bytes, two replicas of a GPU: half of it, 1 s at 10 B/s, before and after the
    ring, which is free.
    """
    topology = equal_world(2, inner=(10.0, 0.0), num_gpus=2)
    chosen = replicas(
        [0, 0],
        [1, 1],
        parallelism=(Parallelism(data=2),) * 2,
        exchange=GradientExchange(overlapped=False, bucket_bytes=20.0),
    )

    result = simulate(topology, model(2, 2, 10.0), chosen)
    compute_end_s = max(span.end_s for span in result.spans)
    started = sorted({(move.microbatch, move.start_s - compute_end_s) for move in sums(result)})
    assert started == [(0, 1.0), (1, 2.0)]
    assert result.makespan_s - compute_end_s == 4.0


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=parallel_cases(min_domains=2), transport=transports(), movement=st.none() | movements())
def test_results_are_in_canonical_order(case, transport, movement):
    """Passes worker by worker as ordered; messages link by link as they left.

    Those that have the link to themselves come as they started.
    """
    topology, workload, chosen = case
    topology: Topology = replace(topology, transport=transport, movement=movement)
    result = simulate(topology, workload, chosen)

    orders = assign(topology, workload, chosen).orders
    done = [(span.kind, span.microbatch, span.stage) for span in result.spans]
    assert done == [tuple(operation) for order in orders for operation in order]
    has_queues = transport.sharing != "none"
    left = [(move.link, move.end_s if has_queues else move.start_s) for move in result.transfers]
    assert left == sorted(left)
