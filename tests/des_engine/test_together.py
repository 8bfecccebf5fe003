"""Several jobs on the same links, by hand, and what is refused."""

from dataclasses import replace

import pytest
from strategies import FREE_BANDWIDTH_BYTES_PER_S, plan, unit_workload, world

from des import ConcurrentJob, IterationResult, Topology, Transport, simulate_together

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
