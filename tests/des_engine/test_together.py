"""Several jobs on the same links: by hand, conservation, and what must not change."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sending import transports
from sharing import FEW, parallel_cases
from strategies import (
    FREE_BANDWIDTH_BYTES_PER_S,
    cases,
    movements,
    plan,
    plans,
    topologies,
    unit_workload,
    workloads,
    world,
)

from des import (
    ConcurrentJob,
    IterationResult,
    Placement,
    Plan,
    Topology,
    Transport,
    simulate,
    simulate_together,
)

SLOW, FREE = (1.0, 0.0), (FREE_BANDWIDTH_BYTES_PER_S, 0.0)


def slow_forth(sharing: str = "fifo") -> Topology:
    """From A to B a byte a second, back as fast as one likes."""
    return replace(world("AB", {"AB": SLOW, "BA": FREE}), transport=Transport(sharing=sharing))


def unit_job(num_microbatches: int, **fields: object) -> ConcurrentJob:
    """F = 1, B = 2 on A and then on B; a message is 4 bytes."""
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=num_microbatches, message_bytes=4.0)
    return ConcurrentJob(workload=workload, plan=plan(0, 1), **fields)


def forth_s(result: IterationResult) -> list[float]:
    """Start and end of each message from A to B, one after the other."""
    moves = [move for move in result.transfers if move.link == 0]
    return [time_s for move in moves for time_s in (move.start_s, move.end_s)]


@pytest.mark.parametrize(
    ("sharing", "priority", "of_two", "of_one", "makespans_s"),
    [
        ("fifo", 0, [1, 5, 5, 9], [7, 11], (14, 16)),
        ("fifo", 1, [1, 5, 9, 13], [3, 7], (18, 12)),
        ("fifo", -1, [1, 5, 5, 9], [7, 11], (14, 16)),
        ("fair", 0, [1, 10.5, 2, 12.5], [1, 11], (18.5, 16)),
    ],
)
def test_two_jobs_meet_on_a_link_by_hand(sharing, priority, of_two, of_one, makespans_s):
    """The messages of one job are ready at 1 and 2; that of the other, which starts at 2, at 3.

    First come, first served, the one at 3 waits for both others, from 9 to 13. With the higher
    priority it waits for the one under way only, and goes from 5 to 9. Shared fairly, 1 byte and
    then 0.5 of the first and 0.5 of the second have left at 3; with a third of the link each the
    first leaves at 10.5, with half of it the second at 12.5, and the last half byte at 13. B then
    computes F and B of each message in turn, A its B. Times of the second job count from 2.
    """
    jobs = [unit_job(2), unit_job(1, start_s=2.0, priority=priority)]
    two, one = simulate_together(slow_forth(sharing), jobs)

    assert forth_s(two) == pytest.approx(of_two)
    assert forth_s(one) == pytest.approx(of_one)
    assert (two.makespan_s, one.makespan_s) == pytest.approx(makespans_s)
    assert (two.links[0].num_bytes, one.links[0].num_bytes) == (8.0, 4.0)


def test_a_message_that_is_ready_when_the_link_is_given_away_is_too_late_by_hand():
    """At 5 the link is free: the second message waits for it, that of the other job comes then."""
    jobs = [unit_job(2), unit_job(1, start_s=4.0, priority=1)]
    two, one = simulate_together(slow_forth(), jobs)

    assert forth_s(two) == [1, 5, 5, 9]
    assert forth_s(one) == [5, 9]


@pytest.mark.parametrize(("priorities", "first"), [((0, 0), 0), ((1, 0), 0), ((0, 1), 1)])
def test_of_messages_ready_at_once_the_priority_and_then_the_list_decide_by_hand(priorities, first):
    results = simulate_together(
        slow_forth(), [unit_job(1, priority=priority) for priority in priorities]
    )

    assert forth_s(results[first]) == [1, 5]
    assert forth_s(results[1 - first]) == [5, 9]


def test_both_directions_of_a_shared_medium_go_by_priority_by_hand():
    """One job holds the medium until 9; its gradient is ready at 8, the other's message at 8.5."""
    topology = replace(world("AB", {"AB": SLOW, "BA": SLOW}), transport=Transport(half_duplex=True))
    late = unit_job(1, start_s=7.5)

    def starts_at_9(priority: int) -> bool:
        _, one = simulate_together(topology, [unit_job(2), replace(late, priority=priority)])
        return one.transfers[0].start_s + late.start_s == 9.0

    assert not starts_at_9(0)
    assert starts_at_9(1)


@pytest.mark.parametrize(
    ("sharing", "jobs", "message"),
    [
        ("fifo", [], "jobs must be at least one, got none"),
        (
            "fair",
            [unit_job(1), unit_job(1, priority=3)],
            "priorities of jobs must be equal where the transport's sharing is fair.* got 0, 3",
        ),
    ],
)
def test_jobs_that_cannot_run_together_are_refused(sharing, jobs, message):
    with pytest.raises(ValueError, match=f"^simulate_together: {message}$"):
        simulate_together(slow_forth(sharing), jobs)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"start_s": -1.0}, "start_s must be .* got -1.0"),
        ({"priority": 0.5}, "priority must be a whole number, got 0.5"),
        ({"priority": True}, "priority must be a whole number, got True"),
    ],
)
def test_a_job_out_of_range_is_refused(fields, message):
    with pytest.raises(ValueError, match=f"^concurrent job: {message}$"):
        unit_job(1, **fields)


@st.composite
def meetings(
    draw: st.DrawFn, priorities: Sequence[int]
) -> tuple[Topology, tuple[ConcurrentJob, ...]]:
    """A world in which all domains are linked, and a job for each priority anywhere in it."""
    topology = draw(topologies(min_domains=2, fully=True))
    return topology, tuple(
        ConcurrentJob(
            workload=(workload := draw(workloads())),
            plan=draw(plans(topology.num_domains, workload.num_layers)),
            start_s=draw(st.integers(0, 8)) / 4,
            priority=priority,
        )
        for priority in priorities
    )


# Conservation.


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(meeting=meetings(priorities=(0, 0, 0)) | meetings(priorities=(2, 0, 1)))
def test_a_queued_link_is_busy_for_all_bytes_and_never_twice(meeting):
    topology, jobs = meeting
    results = simulate_together(topology, jobs)

    for index, link in enumerate(topology.links):
        spans = sorted(
            (move.start_s + job.start_s, move.end_s + job.start_s)
            for job, result in zip(jobs, results, strict=True)
            for move in result.transfers
            if move.link == index
        )
        num_bytes = sum(result.links[index].num_bytes for result in results)
        busy_s = num_bytes / link.bandwidth_bytes_per_s
        assert sum(result.links[index].busy_s for result in results) == pytest.approx(busy_s)
        assert sum(end_s - start_s for start_s, end_s in spans) == pytest.approx(busy_s)
        free_s = 0.0
        for start_s, end_s in spans:
            assert start_s >= free_s - 1e-9
            free_s = end_s


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(meeting=meetings(priorities=(0, 0, 0)))
def test_a_shared_link_is_busy_for_all_bytes(meeting):
    topology, jobs = meeting
    topology = replace(topology, transport=Transport(sharing="fair"))
    results = simulate_together(topology, jobs)

    for index, link in enumerate(topology.links):
        busy_s, until_s, num_bytes = 0.0, 0.0, 0.0
        for start_s, end_s in sorted(
            (move.start_s + job.start_s, move.end_s + job.start_s)
            for job, result in zip(jobs, results, strict=True)
            for move in result.transfers
            if move.link == index
        ):
            busy_s += max(0.0, end_s - max(start_s, until_s))
            until_s = max(until_s, end_s)
        num_bytes = sum(result.links[index].num_bytes for result in results)
        assert busy_s == pytest.approx(num_bytes / link.bandwidth_bytes_per_s, rel=1e-6, abs=1e-9)


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(meeting=meetings(priorities=(2, 0, 1)))
def test_no_message_takes_a_link_while_one_of_higher_priority_waits(meeting):
    """All links are direct: a message is ready when the pass that makes it has ended."""
    topology, jobs = meeting
    waits = []
    for job, result in zip(jobs, simulate_together(topology, jobs), strict=True):
        ready_s = {
            (span.stage, "B" if span.kind == "D" else span.kind, span.microbatch): span.end_s
            for span in result.spans
        }
        for move in result.transfers:
            made_s = ready_s[move.stage, move.kind, move.microbatch]
            times_s = (made_s + job.start_s, move.start_s + job.start_s)
            waits.append((move.link, job.priority, *times_s))

    for link, priority, _, start_s in waits:
        overtaken = [
            (ready_s, later_s)
            for other, higher, ready_s, later_s in waits
            if other == link and higher > priority and ready_s < start_s - 1e-9 < later_s - 2e-9
        ]
        assert overtaken == []


# What must not change.


@settings(max_examples=examples(4 * FEW), deadline=None)
@given(
    case=parallel_cases(min_domains=1),
    transport=transports(),
    movement=st.none() | movements(),
    priority=st.integers(-2, 2),
)
def test_one_job_is_as_if_alone(case, transport, movement, priority):
    topology, workload, chosen = case
    topology = replace(topology, transport=transport, movement=movement)
    job = ConcurrentJob(workload=workload, plan=chosen, priority=priority)

    assert simulate_together(topology, [job]) == (simulate(topology, workload, chosen),)


@settings(max_examples=examples(4 * FEW), deadline=None)
@given(
    topology=topologies(min_domains=4, fully=True),
    pair=st.tuples(
        *[workloads().flatmap(lambda one: st.tuples(st.just(one), plans(2, one.num_layers)))] * 2
    ),
    transport=transports(),
    priority=st.integers(-1, 1),
)
def test_jobs_in_domains_of_their_own_are_as_if_alone(topology, pair, transport, priority):
    """They meet on no link, and their numbers do not change what either does."""
    topology = replace(topology, transport=transport)
    jobs = [
        ConcurrentJob(
            workload=workload,
            plan=_moved(chosen, by=2 * index),
            priority=index * priority if transport.sharing == "fifo" else 0,
        )
        for index, (workload, chosen) in enumerate(pair)
    ]

    alone = tuple(simulate(topology, job.workload, job.plan) for job in jobs)
    assert simulate_together(topology, jobs) == alone


def _moved(chosen: Plan, *, by: int) -> Plan:
    """The same plan in later domains."""
    domains = tuple(domain + by for domain in chosen.placement.domain_of_layer)
    return replace(chosen, placement=Placement(domain_of_layer=domains))


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(meeting=meetings(priorities=(2, 0, 1)), order=st.permutations(range(3)))
def test_the_order_of_jobs_of_different_priority_does_not_matter(meeting, order):
    topology, jobs = meeting
    results = simulate_together(topology, jobs)

    assert simulate_together(topology, [jobs[index] for index in order]) == tuple(
        results[index] for index in order
    )


@given(case=cases(min_domains=2, fully=True), start_s=st.integers(0, 64))
def test_a_later_start_moves_nothing_on_links_that_stand(case, start_s):
    topology, workload, chosen = case
    job = ConcurrentJob(workload=workload, plan=chosen, start_s=float(start_s))
    (late,) = simulate_together(topology, [job])

    early = simulate(topology, workload, chosen)
    assert late.makespan_s == pytest.approx(early.makespan_s, rel=1e-9)
    assert [span.start_s for span in late.spans] == pytest.approx(
        [span.start_s for span in early.spans], abs=1e-9
    )
