"""Figures of domains, links and layers for tests, drawn by Hypothesis.

Strategies are made once: to make and check them takes longer than to draw from them.
"""

from functools import cache

from hypothesis import strategies as st
from law_strategies import none_or

from des import Domain, Layer, Link


@cache
def whole(least: int, most: int) -> st.SearchStrategy[float]:
    """Whole numbers, as bytes and parameters are, in floats."""
    return st.integers(least, most).map(float)


DOMAIN_FIGURES = st.fixed_dictionaries(
    {
        "num_gpus": st.integers(1, 16),
        "gpu_peak_flops_per_s": st.floats(1e12, 1e15),
        "gpu_memory_bytes": st.floats(1e10, 2e11),
        "gpu_memory_bandwidth_bytes_per_s": st.floats(1e11, 1e13),
        "attainable_fraction": st.floats(0.1, 1.0),
        "intra_bandwidth_bytes_per_s": st.floats(1e9, 1e12),
        "intra_latency_s": none_or(1e-8, 1e-5),
    }
)
"""Of a domain of 1 to 16 GPUs."""

LINK_FIGURES = st.fixed_dictionaries(
    {"bandwidth_bytes_per_s": st.floats(1.25e7, 1.25e10), "latency_s": none_or(1e-6, 0.2)}
)
"""Of one direction of a link of 0.1 to 100 Gbit/s and up to 200 ms."""


def domains(name: str) -> st.SearchStrategy[Domain]:
    """A domain of such figures."""
    return DOMAIN_FIGURES.map(lambda figures: Domain(name=name, **figures))


def links(source: str, target: str) -> st.SearchStrategy[Link]:
    """One direction of a link of such figures."""
    return LINK_FIGURES.map(lambda figures: Link(source=source, target=target, **figures))


_LAYER_FIGURES = st.fixed_dictionaries(
    {
        "forward_flops": st.floats(1e11, 1e14),
        "input_gradient_flops": st.floats(1e11, 1e14),
        "weight_gradient_flops": none_or(1e9, 1e14),
        "num_parameters": whole(0, 3 * 10**8),
        "activation_bytes": whole(0, 10**9),
        "weight_input_bytes": whole(0, 10**9),
        "recomputation_flops": st.sampled_from([0.0, 1e12]),
    }
)
"""Of a layer whose passes take milliseconds to seconds."""

_TWO_CHOICES = st.tuples(st.booleans(), st.booleans())


@cache
@st.composite
def layers(draw: st.DrawFn) -> Layer:
    """A layer of which half of what is kept may be replicated."""
    figures, halves = draw(_LAYER_FIGURES), draw(_TWO_CHOICES)
    return Layer(
        **figures,
        replicated_activation_bytes=figures["activation_bytes"] // 2 * halves[0],
        replicated_input_bytes=figures["weight_input_bytes"] // 2 * halves[1],
    )
