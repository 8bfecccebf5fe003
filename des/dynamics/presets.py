"""Laws by name, from measured figures where there are any.

Measured are the sizes of the swings. How they unfold in time is a modelling choice throughout: no
published fit of bandwidth between data centres in time was found, only that series are stationary
with rare excursions, and that few pairs of paths move together (J. L. Garcia-Dorado, "Bandwidth
measurements within the cloud", ACM TOIT 17(4), 2017, arXiv 1512.01129).
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

from des.dynamics.law import Law
from des.dynamics.markov import LinkState, MarkovModulated
from des.dynamics.ornstein_uhlenbeck import OrnsteinUhlenbeck
from des.dynamics.uniform import STEADY, UniformLaw

MINUTE_S, HOUR_S = 60.0, 3600.0

CALM = OrnsteinUhlenbeck(
    bandwidth_sigma=0.02, latency_sigma=0.003, relaxation_s=600.0, interval_s=10.0
)
"""One provider's backbone: AWS pairs deviate by 2 % (Skyplane's throughput profiles of 1/2022, 64
flows: 0.094 of 4.5 Gbit/s), and median ping deviation is 0.3 %. The relaxation time is a choice."""

MULTI_CLOUD = OrnsteinUhlenbeck(
    bandwidth_sigma=math.sqrt(math.log1p(0.25**2)),
    latency_sigma=0.006,
    relaxation_s=600.0,
    interval_s=10.0,
)
"""Between providers: log-normal with a standard deviation of 25 % (Skyplane's profiles ten months
apart: 5th to 95th percentile 0.56-2.07 between GCP, Azure and AWS); the 90th percentile of ping
deviation is 0.6 %. The relaxation time is a choice."""

STRESS = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
"""The band of East-Central-West, once an epoch. Its latency jitter is far above what was
measured: a test, not a network."""

OU = OrnsteinUhlenbeck(bandwidth_sigma=0.15, relaxation_s=60.0, interval_s=1.0)
"""The same +-30 % read as two standard deviations, that come and go within a minute: a choice."""


def _congestion(
    *, normal_s: float, congested_s: float, outage_s: float, outage_every_s: float
) -> MarkovModulated:
    """Normal, congested and nearly down links; outages begin every ``outage_every_s`` on average.

    With the probability q that normal turns into an outage, a cycle takes ``normal + (1 - q)
    congested + q outage`` on average and holds q outages.
    """
    cycle_s = normal_s + congested_s
    outage = cycle_s / (outage_every_s + congested_s - outage_s)
    successors = (("congested", 1.0 - outage), ("outage", outage))
    back = (("normal", 1.0),)
    return MarkovModulated(
        states=(
            LinkState(
                name="normal",
                bandwidth_factor=1.0,
                mean_dwell_s=normal_s,
                followed_by=successors,
            ),
            LinkState(
                name="congested", bandwidth_factor=0.3, mean_dwell_s=congested_s, followed_by=back
            ),
            LinkState(
                name="outage", bandwidth_factor=0.05, mean_dwell_s=outage_s, followed_by=back
            ),
        )
    )


MARKOV_FAST = _congestion(
    normal_s=50 * MINUTE_S,
    congested_s=15 * MINUTE_S,
    outage_s=6 * MINUTE_S,
    outage_every_s=8 * HOUR_S,
)
"""Congestion every hour and an outage every 8 hours: all figures are a choice."""

MARKOV_SLOW = _congestion(
    normal_s=10 * HOUR_S, congested_s=4 * HOUR_S, outage_s=HOUR_S, outage_every_s=96 * HOUR_S
)
"""Congestion that lasts 4 hours, and an outage every 4 days: all figures are a choice."""

DYNAMICS: Mapping[str, Law] = MappingProxyType(
    {
        "steady": STEADY,
        "calm": CALM,
        "multi_cloud": MULTI_CLOUD,
        "stress": STRESS,
        "ou": OU,
        "markov_fast": MARKOV_FAST,
        "markov_slow": MARKOV_SLOW,
    }
)
