"""Laws of several jobs on the same links: conservation, priorities, and what must not change."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import movements
from sending import transports
from sharing import FEW, parallel_cases
from strategies import cases, plans, topologies, workloads

from des import ConcurrentJob, Placement, Plan, Topology, Transport, simulate, simulate_together


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
