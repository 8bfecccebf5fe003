"""Links so slow, or laws so quick, that a message lasts for very many pieces of a course."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sending import transports
from strategies import plan, unit_workload, world

from des import Movement, simulate
from des.base.arithmetic import segment_at
from des.compiled.simulate import simulate_compiled
from des.dynamics import Extremes, LinkFigures, Path, Piece


class Noted:
    """A law whose links are quick and slow in turn; it notes what is asked of each link."""

    def __init__(self, period_s: float, low: float) -> None:
        self.period_s, self.low, self.asked = period_s, low, Counter[int]()

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Any links will do."""

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors."""
        return Extremes(self.low, 1.0, 1.0, 1.0)

    def path(self, links: Sequence[LinkFigures], seed: int) -> Path:
        """The same course in every draw."""
        return self

    def piece_at(self, link: int, time_s: float) -> Piece:
        """Piece that holds a time."""
        self.asked[link] += 1
        turn = segment_at(time_s, self.period_s)
        factor = self.low if (link + turn) % 2 else 1.0
        return Piece(turn * self.period_s, (turn + 1) * self.period_s, factor, 1.0)


slow = st.sampled_from([1.0, 1e-2, 1e-3])
periods_s = st.sampled_from([1e-2, 0.3, 7.0, 1e3])


@pytest.mark.attack
@settings(max_examples=examples(30))
@given(
    speed=slow,
    period_s=periods_s,
    work_s=st.sampled_from([1e-3, 1.0, 1e3]),
    num_microbatches=st.integers(1, 6),
    transport=transports(),
)
def test_courses_are_worked_out_where_messages_are(
    speed, period_s, work_s, num_microbatches, transport
):
    """Both engines do the same; the compiled one asks for a few times what the other does."""
    pairs = ("AB", "BA", "BC", "CB", "AC", "CA")
    topology = replace(
        world("ABCD", dict.fromkeys((*pairs, "CD", "DC"), (speed, 0.1))), transport=transport
    )
    workload = unit_workload([(work_s, work_s)] * 3, num_microbatches=num_microbatches)
    results, asked = [], []
    for engine in (simulate, simulate_compiled):
        law = Noted(period_s, 0.5)
        moving = replace(topology, movement=Movement(law=law, seed=0, start_s=0.0))
        results.append(engine(moving, workload, plan(0, 1, 2)))
        asked.append(law.asked)

    assert results[0] == results[1]
    used = {use for use, link in enumerate(results[0].links) if link.num_messages}
    assert set(asked[1]) <= used | set(asked[0])
    for link, count in asked[1].items():
        assert count <= 8 * asked[0][link] + 300
