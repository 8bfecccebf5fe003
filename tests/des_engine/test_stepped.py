"""Iterations on links that another simulator plays: an exact one of lone messages stands in."""

import heapq
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import unit_workload, world

from des import Placement, Plan, StarvationError, Topology, lower, simulate
from des.simulation.stepped import simulate_stepped

FORTH, BACK = (4.0, 8.0), (2.0, 1.0)
PAIR = world("AB", {"AB": FORTH, "BA": BACK})
JOB = unit_workload([(1, 2), (1, 2)], num_microbatches=3, message_bytes=4.0)
SPLIT = Plan(placement=Placement(domain_of_layer=(0, 1)), schedule="1f1b")


class LoneMessages:
    """Links that each message has to itself, in steps of at most ``most_s``."""

    def __init__(self, topology: Topology, most_s: float = math.inf) -> None:
        self._topology, self._most_s = topology, most_s
        self._now_s = 0.0
        self._arrivals: list[tuple[float, int]] = []

    def send(self, message: int, source: int, target: int, num_bytes: float, time_s: float) -> None:
        assert time_s >= self._now_s
        link = self._topology.link_between(source, target)
        arrival_s = time_s + num_bytes / link.bandwidth_bytes_per_s + link.latency_s
        heapq.heappush(self._arrivals, (arrival_s, message))

    def advance(self, until_s: float) -> tuple[float, tuple[int, ...]]:
        if self._arrivals and self._arrivals[0][0] <= until_s:
            self._now_s, message = heapq.heappop(self._arrivals)
            return self._now_s, (message,)
        if math.isinf(until_s):
            raise StarvationError("nothing is under way")
        self._now_s = until_s
        return until_s, ()


def lone(topology: Topology) -> Topology:
    """The world in which messages never meet."""
    return replace(topology, transport=replace(topology.transport, sharing="none"))


def test_an_iteration_by_hand():
    """Passes of 1 and 2 s; activations take 1 + 8 s and gradients 2 + 1 s on links of their own.

    A's first two forwards end at 1 and 2 s and arrive at 10 and 11 s; B has done both of their
    passes at 13 and 16 s, whose gradients arrive at 16 and 19 s. A does F of the third from 18 to
    19 s, behind its first backward pass; it arrives at 28 s, comes back at 34 s and ends at 36 s.
    """
    result = simulate_stepped(PAIR, lower(PAIR, JOB, SPLIT), LoneMessages)

    assert result.makespan_s == 36.0
    forth = [one for one in result.transfers if one.link == 0]
    assert [(one.start_s, one.end_s, one.arrival_s) for one in forth] == [
        (1.0, 2.0, 10.0),
        (2.0, 3.0, 11.0),
        (19.0, 20.0, 28.0),
    ]
    assert [link.busy_s for link in result.links] == [3.0, 6.0]
    assert [link.num_bytes for link in result.links] == [12.0, 12.0]


@settings(max_examples=15)
@given(
    passes=st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9).map(lambda one: 2 * one)),
        min_size=2,
        max_size=4,
    ),
    num_microbatches=st.integers(1, 6),
    schedule=st.sampled_from(("gpipe", "1f1b", "zb_h1")),
    replicas=st.booleans(),
)
def test_links_of_lone_messages_give_the_iteration_without_queues(
    passes, num_microbatches, schedule, replicas
):
    """Whole seconds and powers of two: both engines add exactly the same numbers."""
    topology = lone(world("AB", {"AB": FORTH, "BA": BACK}))
    job = unit_workload(passes, num_microbatches=2 * num_microbatches, message_bytes=4.0)
    split = Placement(domain_of_layer=(0,) + (1,) * (len(passes) - 1))
    plan = (
        Plan(
            placement=Placement(domain_of_layer=(0,) * len(passes)),
            replicas=(Placement(domain_of_layer=(1,) * len(passes)),),
            schedule=schedule,
        )
        if replicas
        else Plan(placement=split, schedule=schedule)
    )

    stepped = simulate_stepped(topology, lower(topology, job, plan), LoneMessages)
    plain = simulate(topology, job, plan)

    assert stepped.makespan_s == pytest.approx(plain.makespan_s, rel=1e-12)
    assert [link.num_bytes for link in stepped.links] == [link.num_bytes for link in plain.links]
    assert len(stepped.spans) == len(plain.spans)


def test_one_message_of_a_sender_at_a_time():
    """As in the iteration on wires, where a message waits for the one before it to arrive."""
    transport = replace(PAIR.transport, endpoints="one_in_flight")
    topology = replace(PAIR, transport=transport)

    stepped = simulate_stepped(topology, lower(topology, JOB, SPLIT), LoneMessages)

    assert stepped.makespan_s == simulate(topology, JOB, SPLIT).makespan_s
