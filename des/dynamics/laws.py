"""Table of laws: one row makes a law known to files, commands and compiled code."""

from collections.abc import Mapping
from dataclasses import is_dataclass

from des.base.offers import OfferedRows
from des.dynamics.law import Law
from des.dynamics.markov import MarkovModulated
from des.dynamics.ornstein_uhlenbeck import OrnsteinUhlenbeck
from des.dynamics.product import Product
from des.dynamics.replay import Replay
from des.dynamics.uniform import UniformLaw


def _law_offered(name: str, loaded: object) -> type[Law]:
    if not isinstance(loaded, type) or not is_dataclass(loaded):
        raise ValueError(f"law {name}: must be a dataclass with the methods of Law")
    return loaded  # type: ignore[return-value]


LAWS: Mapping[str, type[Law]] = OfferedRows(
    {
        "uniform": UniformLaw,
        "ornstein_uhlenbeck": OrnsteinUhlenbeck,
        "markov": MarkovModulated,
        "replay": Replay,
        "product": Product,
    },
    "eastwest.laws",
    _law_offered,
)
"""Laws by the ``kind`` that files have for them.

Other packages add theirs by entry points of the group ``eastwest.laws``.

A law whose fields are numbers has its form in files by itself, see
`des.world.files.dynamics_forms.plain_form`. Compiled code works out the course of any law from its
pieces; the uniform law it draws itself, see `des.compiled.links.weather_fields`.
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
