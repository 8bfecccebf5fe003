"""Table of laws: one row makes a law known to files, commands and compiled code."""

from collections.abc import Mapping
from types import MappingProxyType

from des.dynamics.law import Law
from des.dynamics.markov import MarkovModulated
from des.dynamics.ornstein_uhlenbeck import OrnsteinUhlenbeck
from des.dynamics.product import Product
from des.dynamics.replay import Replay
from des.dynamics.uniform import UniformLaw

LAWS: Mapping[str, type[Law]] = MappingProxyType(
    {
        "uniform": UniformLaw,
        "ornstein_uhlenbeck": OrnsteinUhlenbeck,
        "markov": MarkovModulated,
        "replay": Replay,
        "product": Product,
    }
)
"""Laws by the ``kind`` that files have for them.

Their forms in files are `des.world.files.dynamics_forms.FORMS`. Compiled code works out the course
of any law from its pieces; `des.compiled.links.DRAWN_IN_KERNELS` are those that it draws itself.
"""


def kind_of(law: Law) -> str:
    """Name of a law in `LAWS`.

    Raises
    ------
    ValueError
        If the law is not in the table.

    Examples
    --------
    >>> kind_of(UniformLaw(bandwidth_fluctuation=0.1, latency_jitter=0.0))
    'uniform'
    """
    for kind, known in LAWS.items():
        if type(law) is known:
            return kind
    raise ValueError(f"dynamics: law must be one of {', '.join(LAWS)}; got {type(law).__name__}")
