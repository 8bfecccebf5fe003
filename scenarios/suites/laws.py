"""Laws of moving links in the suites, by name; some depend on the length of an epoch."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from des import STEADY, Law, OrnsteinUhlenbeck, UniformLaw
from des.dynamics.presets import MARKOV_FAST, MARKOV_SLOW, OU, STRESS

_SAMPLES_PER_RELAXATION = 60


def uniform_law(held_s: float) -> UniformLaw:
    """Bandwidths within +-30 % and latencies within +-20 %, redrawn every ``held_s``."""
    return UniformLaw(
        bandwidth_fluctuation=STRESS.bandwidth_fluctuation,
        latency_jitter=STRESS.latency_jitter,
        update_interval_s=held_s,
    )


def wandering(relaxation_s: float) -> OrnsteinUhlenbeck:
    """Bandwidths that stay within +-30 % for 95 % of the time and forget in ``relaxation_s``."""
    return OrnsteinUhlenbeck(
        bandwidth_sigma=OU.bandwidth_sigma,
        relaxation_s=relaxation_s,
        interval_s=relaxation_s / _SAMPLES_PER_RELAXATION,
    )


LAWS: Mapping[str, Callable[[float], Law]] = MappingProxyType(
    {
        "steady": lambda _: STEADY,
        "uniform": uniform_law,
        "ou": wandering,
        "ou_60s": lambda _: wandering(60.0),
        "ou_600s": lambda _: wandering(600.0),
        "markov_fast": lambda _: MARKOV_FAST,
        "markov_slow": lambda _: MARKOV_SLOW,
    }
)
"""Laws by name, as functions of the time for which the load is held. [s]"""
