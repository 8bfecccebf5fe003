"""Laws of every kind for the links of a world: those of the table, and one of another package."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from law_strategies import dynamics, laws

from des import Link
from des.base.arithmetic import segment_at
from des.dynamics import (
    Extremes,
    Law,
    LinkFigures,
    LinkSeries,
    LinkState,
    MarkovModulated,
    OrnsteinUhlenbeck,
    Path,
    Piece,
    Product,
    Replay,
    UniformLaw,
)


@dataclass(frozen=True, kw_only=True)
class Tide:
    """A law of another package: links rise and fall in turn, each time for as long."""

    period_s: float
    ebb: float

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Any links will do."""

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors, the same on every link."""
        return Extremes(self.ebb, 1.0, 1.0, 1.0 + self.ebb)

    def path(self, links: Sequence[LinkFigures], seed: int) -> Path:
        """Draw which links rise first."""
        return _TidePath(self, seed)


class _TidePath:
    def __init__(self, law: Tide, seed: int) -> None:
        self._law, self._seed = law, seed

    def piece_at(self, link: int, time_s: float) -> Piece:
        """Piece that holds a time."""
        law, turn = self._law, segment_at(time_s, self._law.period_s)
        start_s, end_s = turn * law.period_s, (turn + 1) * law.period_s
        is_low = (self._seed + link + turn) % 2 == 1
        return Piece(start_s, end_s, law.ebb if is_low else 1.0, 1.0 + law.ebb * is_low)


UP_AND_DOWN = MarkovModulated(
    states=(
        LinkState(name="up", bandwidth_factor=1.0, mean_dwell_s=9.0, followed_by=(("down", 1.0),)),
        LinkState(name="down", bandwidth_factor=0.0, mean_dwell_s=4.0, followed_by=(("up", 1.0),)),
    )
)
FAST_AND_SLOW = MarkovModulated(
    states=(
        LinkState(
            name="fast", bandwidth_factor=1.0, mean_dwell_s=9.0, followed_by=(("slow", 1.0),)
        ),
        LinkState(
            name="slow", bandwidth_factor=0.1, mean_dwell_s=4.0, followed_by=(("fast", 1.0),)
        ),
    )
)
MOVING = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=0.7)
WANDERING = OrnsteinUhlenbeck(
    bandwidth_sigma=0.3, latency_sigma=0.2, relaxation_s=9.0, interval_s=1.1
)
LAWS: dict[str, Law] = {
    "uniform": MOVING,
    "uniform together": replace(MOVING, update_interval_s=4.0, correlation=0.5),
    "wandering": WANDERING,
    "fast and slow": FAST_AND_SLOW,
    "product": Product(laws=(WANDERING, FAST_AND_SLOW)),
    "own": Tide(period_s=2.5, ebb=0.3),
}
"""One of every kind that moves any links and leaves them some bandwidth."""


def replay_of(
    links: Sequence[Link],
    times_s: Sequence[float],
    factors: Sequence[float],
    *,
    holds_last: bool = True,
) -> Replay:
    """Links that all have their base figures times a factor from each time on."""
    series = [
        LinkSeries(
            source=link.source,
            target=link.target,
            times_s=tuple(times_s),
            bandwidths_bytes_per_s=tuple(link.bandwidth_bytes_per_s * one for one in factors),
            latencies_s=tuple(link.latency_s * (2.0 - one) for one in factors),
        )
        for link in links
    ]
    return Replay(name="trace", series=tuple(series), holds_last=holds_last)


@st.composite
def replays(draw: st.DrawFn, links: Sequence[Link]) -> Replay:
    """Traces of some links, the last figures of which hold on."""
    gaps_s = draw(st.lists(st.floats(0.1, 200.0), max_size=5))
    times_s = [sum(gaps_s[:count]) for count in range(len(gaps_s) + 1)]
    middle = draw(st.lists(st.floats(0.1, 2.0), min_size=9, max_size=9))
    return replay_of(links, times_s, [*middle[: len(gaps_s)], draw(st.floats(0.1, 2.0))])


def every_law(links: Sequence[Link]) -> st.SearchStrategy[Law]:
    """Any law of some links that leaves them bandwidth: drawn once an epoch or moving in time."""
    together = st.builds(replace, dynamics(), correlation=st.sampled_from([0.3, 1.0]))
    own = st.builds(Tide, period_s=st.floats(0.5, 60.0), ebb=st.floats(0.1, 1.0))
    any_law = laws(outages=False) | dynamics() | together | own
    if not links:
        return any_law
    trace = replays(links)
    return any_law | trace | st.builds(Product, laws=st.tuples(trace, laws(outages=False)))
