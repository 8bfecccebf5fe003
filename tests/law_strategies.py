"""Laws of moving links for tests: a state of a link by hand, Hypothesis generators for laws."""

import math
from functools import cache

from hypothesis import strategies as st

from des import (
    Movement,
    UniformLaw,
)
from des.dynamics import Law, LinkState, MarkovModulated, OrnsteinUhlenbeck, Product


def link_state(
    name: str,
    dwell_s: float,
    factor: float = 1.0,
    latency_factor: float = 1.0,
    **followed_by: float,
) -> LinkState:
    """A state of a link and the probabilities of those that follow it."""
    return LinkState(
        name=name,
        bandwidth_factor=factor,
        mean_dwell_s=dwell_s,
        followed_by=tuple(followed_by.items()),
        latency_factor=latency_factor,
    )


@cache
def none_or(least: float, most: float) -> st.SearchStrategy[float]:
    """Nothing, or at least what is found in the world: no time is 1e-300 s."""
    return st.just(0.0) | st.floats(least, most)


@cache
@st.composite
def dynamics(draw: st.DrawFn, *, moving: bool | None = None) -> UniformLaw:
    """A law of moving links; ``moving`` says whether within an iteration, or either.

    Gradients over slow links take an hour, so shorter intervals would be millions of draws.
    """
    if moving is None:
        moving = draw(st.booleans())
    return UniformLaw(
        bandwidth_fluctuation=draw(none_or(1e-3, 0.95)),
        latency_jitter=draw(none_or(1e-3, 0.95)),
        update_interval_s=draw(st.floats(0.5, 20.0)) if moving else None,
    )


@cache
@st.composite
def wandering_laws(draw: st.DrawFn) -> OrnsteinUhlenbeck:
    """Log bandwidths and latencies that wander about their means."""
    interval_s = draw(st.floats(0.5, 20.0))
    return OrnsteinUhlenbeck(
        bandwidth_sigma=draw(st.floats(0.0, 0.5)),
        latency_sigma=draw(st.floats(0.0, 0.5)),
        relaxation_s=interval_s * draw(st.floats(0.1, 50.0)),
        interval_s=interval_s,
        correlation=draw(st.sampled_from([0.0, 0.5, 1.0])),
        most_sigmas=draw(st.floats(1.0, 6.0)),
    )


@cache
@st.composite
def markov_laws(draw: st.DrawFn, *, outages: bool = True) -> MarkovModulated:
    """Links that are up at times, and down or slow at others; outages end."""
    count = draw(st.integers(1, 4))
    names = [f"state{index}" for index in range(count)]
    factor = st.floats(0.1, 2.0)
    states = []
    for index, name in enumerate(names):
        others = draw(st.permutations([other for other in names[1:] if other != name]))
        others += names[:1] * (index > 0)  # which is up, and may follow any other
        weights = [draw(st.integers(0, 3)) for _ in others[1:]] + [1] * (count > 1)
        states.append(
            LinkState(
                name=name,
                bandwidth_factor=draw(factor | st.just(0.0) if outages and index else factor),
                latency_factor=draw(factor),
                mean_dwell_s=draw(st.floats(5.0, 500.0)) if count > 1 else math.inf,
                followed_by=tuple(
                    (other, weight / sum(weights))
                    for other, weight in zip(others, weights, strict=True)
                    if weight
                ),
            )
        )
    return MarkovModulated(
        states=tuple(states),
        starts_in=draw(st.sampled_from(names)),
        correlation=draw(st.sampled_from([0.0, 0.5, 1.0])),
    )


@cache
def laws(*, outages: bool = True) -> st.SearchStrategy[Law]:
    """Laws of links that move while an iteration runs; outages, where allowed, end."""
    single = dynamics(moving=True) | wandering_laws() | markov_laws(outages=outages)
    return single | st.builds(Product, laws=st.lists(single, min_size=1, max_size=2).map(tuple))


@cache
def movements(*, outages: bool = True) -> st.SearchStrategy[Movement]:
    """Links that move while an iteration runs."""
    return st.builds(
        Movement,
        law=laws(outages=outages),
        seed=st.integers(0, 2**63 - 1),
        start_s=st.just(0.0) | st.floats(0.0, 1e4),
    )
