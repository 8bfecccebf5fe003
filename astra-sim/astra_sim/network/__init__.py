"""The two network models: messages that never meet, and messages that queue for links."""

from typing import TYPE_CHECKING, Literal, get_args

from astra_sim.base.lazy import lazy
from astra_sim.core.events import EventQueue
from astra_sim.files.errors import AstraSimUsageError
from astra_sim.files.network_config import NetworkConfig
from astra_sim.network.links import AnalyticalNetwork

if TYPE_CHECKING:
    from astra_sim.network import aware, unaware
else:
    aware = lazy("astra_sim.network.aware")
    unaware = lazy("astra_sim.network.unaware")

__all__ = ["AnalyticalNetwork", "Backend", "make_network"]

Backend = Literal["unaware", "aware"]


def make_network(
    config: NetworkConfig, queue: EventQueue, *, backend: Backend, multi_dimensional: bool = False
) -> AnalyticalNetwork:
    """Build the network of a configuration.

    Parameters
    ----------
    config
        Dimensions of the network.
    queue
        Tells the time and takes the arrivals.
    backend
        ``unaware`` of congestion, or ``aware`` of it.
    multi_dimensional
        Let the aware network have several dimensions, which the original refuses.

    Raises
    ------
    AbortError
        If the aware network has a ring of two.
    UsageError
        If the aware network has several dimensions and ``multi_dimensional`` is not set, or there
        is no such backend.
    """
    if backend not in get_args(Backend):
        raise AstraSimUsageError(
            f"backend: must be one of {', '.join(get_args(Backend))}; got {backend!r}"
        )
    if backend == "unaware":
        return unaware.UnawareNetwork(config, queue)
    return aware.AwareNetwork(config, queue, multi_dimensional=multi_dimensional)
