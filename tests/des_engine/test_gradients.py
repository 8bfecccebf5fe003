"""Sums of gradients over replicas against hand-computed cases and closed forms."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharing import equal_world, model, replicas, sums

from des import GradientExchange, Parallelism, Transfer, simulate
from des.costs.collectives import hierarchical_all_reduce_s

AT_THE_END = GradientExchange(overlapped=False)


# Hand cases.


def test_two_replicas_by_hand():
    """3 s of work each, then 20 bytes in two steps of 10 bytes: 2 s and 0.5 s of flight, twice."""
    result = simulate(equal_world(2, link=(5.0, 0.5)), model(1, 2, 10.0), replicas([0], [1]))

    assert sums(result) == [
        Transfer(0, 0, "G", 0, 3, 5, 5.5),
        Transfer(0, 0, "G", 0, 5.5, 7.5, 8),
        Transfer(1, 1, "G", 0, 3, 5, 5.5),
        Transfer(1, 1, "G", 0, 5.5, 7.5, 8),
    ]
    assert result.makespan_s == 8
    assert result.exposed_exchange_s == 5
    assert [stage.idle_s for stage in result.stages] == [5, 5]


@pytest.mark.parametrize(
    ("overlapped", "wire_s", "makespan_s"),
    [
        (True, [(4, 5), (5.5, 6.5), (6.5, 7.5), (8, 9)], 9.5),
        (False, [(6, 7), (7, 8), (8, 9), (9, 10)], 10.5),
    ],
)
def test_buckets_leave_as_the_last_backward_pass_makes_them_by_hand(overlapped, wire_s, makespan_s):
    """Two layers, F 0-2, B 2-6: layer 1 is ready at 4, layer 0 at 6. A step takes 1 s + 0.5 s.

    Overlapped: layer 1 leaves at 4 and 5.5; layer 0 waits for the wire from 6 to 6.5 and leaves
    again at 8. At the end: layer 1 at 6, layer 0 at 7, then each again behind the other.
    """
    exchange = GradientExchange(overlapped=overlapped, bucket_bytes=20.0)
    chosen = replicas([0, 0], [1, 1], exchange=exchange)

    result = simulate(equal_world(2, link=(10.0, 0.5)), model(2, 2, 10.0), chosen)
    for link in range(2):
        assert [move[4:6] for move in sums(result) if move.link == link] == wire_s
    assert result.makespan_s == makespan_s


def test_without_overlap_a_stage_waits_for_its_pipeline_by_hand():
    """Stages of 1 s + 2 s on free links: stage 1 is done at 4, stage 0 at 6."""

    def ready_s(exchange):
        chosen = replicas([0, 1], [2, 3], exchange=exchange)
        result = simulate(equal_world(4), model(2, 2, 10.0), chosen)
        return [min(move.start_s for move in sums(result) if move.stage == s) for s in range(4)]

    assert ready_s(GradientExchange()) == [6, 4, 6, 4]
    assert ready_s(AT_THE_END) == [6, 6, 6, 6]


def test_a_replica_with_fewer_microbatches_waits_by_hand():
    """Three microbatches: 6 s here, 3 s there.

    What comes from there has long arrived when the sum starts here: both steps leave one behind
    the other. There the second step waits for the first from here, until 7.5.
    """
    result = simulate(equal_world(2, link=(10.0, 0.5)), model(1, 3, 10.0), replicas([0], [1]))

    assert [move[4:] for move in sums(result) if move.stage == 0] == [(6, 7, 7.5), (7, 8, 8.5)]
    assert [move[4:] for move in sums(result) if move.stage == 1] == [(3, 4, 4.5), (7.5, 8.5, 9)]
    assert result.makespan_s == 9


def test_sums_wait_for_the_halves_that_make_them():
    """ZB-H1 ends with a weight gradient: F 0-1, D 1-2, W 2-3."""
    result = simulate(equal_world(2), model(1, 2, 10.0), replicas([0], [1], schedule="zb_h1"))

    assert {move.start_s for move in sums(result)} == {3}


def test_empty_sums_cost_the_latency_of_every_step():
    result = simulate(equal_world(3, link=(1.0, 0.25)), model(1, 3, 0.0), replicas([0], [1], [2]))

    assert result.makespan_s == 3 + 4 * 0.25


# Closed forms.


@given(
    num_replicas=st.integers(2, 5),
    data=st.integers(1, 4),
    inner=st.tuples(st.floats(1.0, 1e3), st.floats(0.0, 1.0)),
    outer=st.tuples(st.floats(1.0, 1e3), st.floats(0.0, 1.0)),
    num_parameters=st.floats(0.0, 1e3),
)
def test_one_bucket_is_a_hierarchical_all_reduce(num_replicas, data, inner, outer, num_parameters):
    """With a single rank a domain that is 2 (R - 1) (latency + n / (R B))."""
    topology = equal_world(num_replicas, link=outer, inner=inner, num_gpus=data)
    chosen = replicas(
        *([domain, domain] for domain in range(num_replicas)),
        parallelism=(Parallelism(data=data),) * num_replicas,
    )

    result = simulate(topology, model(2, num_replicas, num_parameters), chosen)
    payload_bytes = 2 * 2 * num_parameters
    expected = hierarchical_all_reduce_s(
        payload_bytes,
        num_domains=num_replicas,
        ranks_per_domain=data,
        inner_bandwidth_bytes_per_s=inner[0],
        inner_latency_s=inner[1],
        outer_bandwidth_bytes_per_s=outer[0],
        outer_latency_s=outer[1],
    )
    assert result.makespan_s == pytest.approx(6 / data + expected)
    if data == 1:
        steps = 2 * (num_replicas - 1)
        step_s = outer[1] + payload_bytes / (num_replicas * outer[0])
        assert expected == pytest.approx(steps * step_s)


def test_gpus_that_share_a_layer_sum_up_their_part_inside_by_hand():
    """Two replicas of two GPUs in each of two domains; 40 bytes, 20 on each GPU.

    Inside one step of 10 bytes, 0.5 s, before and after; outside two steps of 20 bytes, 2 s each.
    """
    topology = equal_world(2, link=(10.0, 0.0), inner=(20.0, 0.0), num_gpus=4)
    chosen = replicas([0], [1], parallelism=(Parallelism(tensor=2, data=2),) * 2)

    result = simulate(topology, model(1, 2, 20.0), chosen)
    assert result.makespan_s == 3 / 4 + 0.5 + 2 * 2 + 0.5


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@given(num_stages=st.integers(1, 4), share=st.integers(1, 4))
def test_two_replicas_on_free_links_take_the_time_of_half_the_microbatches(
    schedule, num_stages, share
):
    """(m / 2 + p - 1)(f + b): half the time where there is one stage."""
    chosen = replicas(range(num_stages), range(num_stages, 2 * num_stages), schedule=schedule)

    result = simulate(equal_world(2 * num_stages), model(num_stages, 2 * share, 1.0), chosen)
    assert result.makespan_s == 3 * (share + num_stages - 1)
    halves = result.spans[: len(result.spans) // 2], result.spans[len(result.spans) // 2 :]
    assert len(halves[0]) == len(halves[1]) == 2 * num_stages * share


@pytest.mark.parametrize("schedule", ["greedy", "zb_auto", "deep_1f1b"])
def test_every_replica_has_a_schedule_for_its_own_pipeline(schedule):
    """The second one has slower links, and one microbatch less."""
    topology = equal_world(4, link=(2.0, 0.5))
    slow = [
        dataclasses.replace(link, latency_s=3.0)
        if {link.source, link.target} == {"C", "D"}
        else link
        for link in topology.links
    ]
    topology = dataclasses.replace(topology, links=tuple(slow))
    workload = dataclasses.replace(model(2, 7, 0.0), message_bytes=1.0)

    both = simulate(topology, workload, replicas([0, 1], [2, 3], schedule=schedule))
    for replica, domains in enumerate(([0, 1], [2, 3])):
        share = dataclasses.replace(workload, num_microbatches=4 - replica)
        alone = simulate(topology, share, replicas(domains, schedule=schedule))
        own = [span for span in both.spans if span.stage // 2 == replica]
        assert [(span.stage % 2, *span[1:]) for span in own] == list(alone.spans)


def test_equal_replicas_do_the_same_at_the_same_time():
    """Whichever of them comes first in the ring."""
    topology = equal_world(6, link=(10.0, 0.5), inner=(20.0, 0.25), num_gpus=2)
    chosen = replicas([0, 1], [2, 3], [4, 5], parallelism=(Parallelism(data=2),) * 6)

    result = simulate(topology, model(2, 6, 10.0), chosen)
    stages = [[span[1:] for span in result.spans if span.stage == stage] for stage in range(6)]
    assert stages == stages[:2] * 3
    moves = [[move[2:] for move in sums(result) if move.stage == stage] for stage in range(6)]
    assert moves == moves[:2] * 3
