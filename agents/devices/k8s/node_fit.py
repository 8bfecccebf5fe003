"""Fit of a pod on one node: the best free GPUs that its policy allows, or the reason against it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from agents.devices.fragmentation import fragmentation
from agents.devices.free_gpus import FreeGpus
from agents.devices.gpu_placement import PAYLOAD_BYTES, gpus_all_reduce_s, optimal_placement
from agents.devices.numa_policies import POLICIES, NumaPolicy, most_nodes
from agents.devices.ring_times import set_all_reduces_s
from agents.devices.set_tables import MOST_IN_SETS
from des.devices.gpus import MOST_GPUS
from des.devices.server import Server

POLICY_NAMED: Mapping[str, NumaPolicy] = MappingProxyType(
    {**{name: name for name in POLICIES}, "single-numa-node": "single-numa"}
)
"""Policies by the names of pods; the last is that of Kubernetes' topology manager."""


LATENCY_BYTES = 8.0
"""Buffer of an all-reduce that is all latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFit:
    """GPUs of a node for a pod.

    Attributes
    ----------
    gpus
        Numbers of the GPUs.
    all_reduce_s
        Predicted time of an all-reduce of 100 MB among them; None for more than 16. [s]
    latency_s
        The same of 8 bytes. [s]
    num_nodes
        NUMA nodes that they are on; None where those of a GPU are not known.
    fragmentation_fraction
        Expected loss of the next jobs on the GPUs that are left, in [0, 1].
    """

    gpus: tuple[int, ...]
    all_reduce_s: float | None
    latency_s: float | None
    num_nodes: int | None
    fragmentation_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFit:
    """Reason against a node; ``can_be_freed`` where evicting pods may help."""

    reason: str
    can_be_freed: bool


def fit_on_server(
    server: Server, free: Sequence[int], num_gpus: int, policy: str
) -> NodeFit | NoFit:
    """Choose GPUs of a server for a pod: least predicted time among at most 16 free GPUs.

    Parameters
    ----------
    free
        Numbers of the GPUs that no other pod has.
    policy
        Rule for NUMA nodes as the pod names it, see `agents.devices.numa_policies`.
    """
    known = POLICY_NAMED.get(policy)
    if known is None:
        return NoFit(
            reason=f"policy must be one of {', '.join(POLICY_NAMED)}, got {policy!r:.80}",
            can_be_freed=False,
        )
    if num_gpus > server.num_gpus:
        return NoFit(
            reason=f"has {server.num_gpus} GPUs, the pod needs {num_gpus}", can_be_freed=False
        )
    try:
        most_nodes(server, num_gpus, range(server.num_gpus), known)
    except ValueError as error:
        return NoFit(reason=f"can never meet the policy: {error}", can_be_freed=False)
    if num_gpus > len(free):
        return NoFit(
            reason=f"has {len(free)} of {server.num_gpus} GPUs free, the pod needs {num_gpus}",
            can_be_freed=True,
        )
    try:
        found = optimal_placement(
            server, num_gpus, free, known, by="time" if len(free) <= MOST_IN_SETS else "nvlinks"
        )
    except ValueError as error:
        return NoFit(reason=str(error), can_be_freed=True)
    taken = frozenset(found.gpus)
    left = tuple(number for number in free if number not in taken)
    after = FreeGpus(name=server.name, server=server, numbers=left)
    return NodeFit(
        gpus=found.gpus,
        all_reduce_s=gpus_all_reduce_s(server, found.gpus),
        latency_s=gpus_all_reduce_s(server, found.gpus, LATENCY_BYTES),
        num_nodes=found.num_nodes,
        fragmentation_fraction=fragmentation([after]).fraction,
    )


def times_range(
    servers: Iterable[Server], num_gpus: int, payload_bytes: float = PAYLOAD_BYTES
) -> tuple[float, float] | None:
    """Least and most time of an all-reduce in any set of a size on some servers. [s]

    Servers of more than 16 GPUs count with their best set. None where no server has enough GPUs, or
    more than 16 are in a set.
    """
    if num_gpus > MOST_GPUS:
        return None
    times: list[float] = []
    for server in servers:
        places = range(server.num_gpus)
        if num_gpus > len(places):
            continue
        if len(places) > MOST_GPUS:
            best = optimal_placement(server, num_gpus).gpus
            found = gpus_all_reduce_s(server, best, payload_bytes)
            times += [] if found is None else [found]
            continue
        of_sets = set_all_reduces_s(server, tuple(places), num_gpus, payload_bytes)
        finite = of_sets[np.isfinite(of_sets)]
        times += [float(finite.min()), float(finite.max())]
    return (min(times), max(times)) if times else None
