"""Runs beyond 2**53 ns: computations alone are equal to the original's, the rest is refused."""

import pytest
from astra_runs import finishes, run
from astra_traces import ALL_REDUCE, Case, collective, compute, network_file, receive, send

from astra_sim.files.errors import AbortError

LATE_US = 2**53 // 1000 + 8
NETWORK = network_file("Ring", 2)


def case(*ranks):
    return Case(ranks=ranks, network=NETWORK)


def test_computations_alone_finish_beyond_the_last_exact_time():
    ranks = [compute(0, LATE_US), compute(1, 8, [0])], [compute(0, 1)]

    assert finishes(run(case(*ranks))) == [(LATE_US + 8) * 1000, 1000]


@pytest.mark.parametrize(
    ("late", "other"),
    [
        (collective(1, ALL_REDUCE, 2**20, [0]), collective(1, ALL_REDUCE, 2**20)),
        (send(1, 1, 100, 0, [0]), receive(1, 0, 100, 0)),
    ],
)
def test_what_is_not_alone_is_refused_by_name(late, other):
    with pytest.raises(AbortError, match=f"rank 0, node 1 'node 1': must be done by {2**53} ns"):
        run(case([compute(0, LATE_US), late], [compute(0, 1), other]))


def test_messages_done_before_do_not_matter_unless_times_are_no_doubles():
    """The odd time at which the message comes stays in the end of the computation after it."""
    pair = [send(0, 1, 2**20, 0), compute(1, LATE_US)], [receive(0, 0, 2**20, 0)]
    (arrival_ns,) = set(finishes(run(case(*([node] for node, *_ in pair)))))
    assert arrival_ns % 2 == 1

    assert max(finishes(run(case(*pair)))) == LATE_US * 1000
    after_message = compute(1, LATE_US, [0])
    with pytest.raises(AbortError, match=f"must be a double .* got {arrival_ns + LATE_US * 1000}"):
        run(case([pair[0][0], after_message], pair[1]))


def test_times_that_do_not_fit_64_bits_are_refused():
    longest = compute(0, (2**64 - 2**20) // 1000)

    with pytest.raises(AbortError, match=f"must be a double below {2**64}"):
        run(case([longest, compute(1, 2**30, [0])], [compute(0, 1)]))
