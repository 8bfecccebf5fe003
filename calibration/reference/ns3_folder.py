"""Folders for ASTRA-sim's ns-3: physical topology, settings and logical topology of a world."""

import math
from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType

from calibration.cases.case import PlacementCase
from calibration.reference.astra_config import logical_topology_json
from calibration.reference.trace_set import TraceSet
from des.world.topology import Topology

_LOGICAL, PHYSICAL_FILE, SETTINGS_FILE = (
    "logical_topology.json",
    "physical_topology.txt",
    "config.txt",
)

_HOST_RATE_BITS_PER_S, _HOST_LATENCY_S = 100e9, 1e-5
"""Link between a domain that is one NPU and its gateway."""

_MOST_MESSAGE_BYTES = 2**31 - 1
"""Messages of 2 GiB overflow in that program."""

_PAYLOAD_BYTES = 1000
_LEAST_BUFFER_MB = 32
_LEAST_THRESHOLDS_KB_PER_GBIT_PER_S = 4.0, 16.0
"""Thresholds at which marking begins and is certain: 100 and 400 KB at 25 Gbit/s [1]_.

.. [1] Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 5.1.
"""

_PARTS_OF_PRODUCT = 0.2, 0.8
"""The same over the bandwidth-delay product, where that is more, as it is between domains."""

_FIXED: Mapping[str, str] = MappingProxyType(
    {
        "ENABLE_QCN": "1",
        "USE_DYNAMIC_PFC_THRESHOLD": "1",
        "PACKET_PAYLOAD_SIZE": str(_PAYLOAD_BYTES),
        "CC_MODE": "1",
        "ALPHA_RESUME_INTERVAL": "1",
        "RATE_DECREASE_INTERVAL": "4",
        "CLAMP_TARGET_RATE": "0",
        "RP_TIMER": "900",
        "EWMA_GAIN": "0.00390625",
        "FAST_RECOVERY_TIMES": "1",
        "RATE_AI": "50Mb/s",
        "RATE_HAI": "100Mb/s",
        "MIN_RATE": "100Mb/s",
        "ERROR_RATE_PER_LINK": "0.0000",
        "L2_CHUNK_SIZE": "4000",
        "L2_ACK_INTERVAL": "1",
        "L2_BACK_TO_ZERO": "0",
        "HAS_WIN": "0",
        "RATE_BOUND": "1",
        "ACK_HIGH_PRIO": "0",
        "LINK_DOWN": "0 0 0",
        "ENABLE_TRACE": "0",
    }
)
"""DCQCN without a window: the thresholds above limit the queues of each link. Keys are those of
HPCC's simulator, whose network that program uses."""


def require_safe(case: PlacementCase, traces: TraceSet) -> None:
    """Refuse what makes ASTRA-sim's ns-3 hang or overflow, before it is started.

    Raises
    ------
    ValueError
        If a message has 2 GiB, packets are lost at random, or traces and NPUs differ in number.
    """
    loss = case.topology.transport.packets.loss_fraction
    if loss > 0:
        raise ValueError(
            f"ASTRA-sim's ns-3: transport.packets.loss_fraction must be 0, as its "
            f"hosts wait for lost packets for ever, got {loss!r}"
        )
    if len(traces.traces) != case.num_npus:
        raise ValueError(
            f"ASTRA-sim's ns-3: traces must be one for each of {case.num_npus} NPUs, "
            f"got {len(traces.traces)}"
        )
    for rank, trace in enumerate(traces.traces):
        for node in trace.nodes:
            if "comm_size" not in node.attributes:
                continue
            size = node.unsigned64("comm_size")
            if size > _MOST_MESSAGE_BYTES:
                raise ValueError(
                    f"ASTRA-sim's ns-3: messages must be below 2 GiB, got {size} "
                    f"bytes in node {node.name} of rank {rank}"
                )


def folder_texts(case: PlacementCase) -> dict[str, str]:
    """Make the files of a network by name.

    Raises
    ------
    ValueError
        If the two directions of a link differ.
    """
    return {
        _LOGICAL: logical_topology_json(case),
        PHYSICAL_FILE: physical_topology(case),
        SETTINGS_FILE: settings_text(case),
    }


def network_flags(traces: TraceSet) -> dict[str, str]:
    """Flags that name the files; without groups their file is ``empty``."""
    flags = {
        "network-configuration": SETTINGS_FILE,
        "logical-topology-configuration": _LOGICAL,
    }
    return flags if traces.groups else {**flags, "comm-group-configuration": "empty"}


def physical_topology(case: PlacementCase) -> str:
    """Write hosts, gateways and links: NPUs first, then one switch a domain.

    The first line has the numbers of nodes, switches and links, the second the switches; each link
    is its two nodes, rate, delay and rate of errors.
    """
    topology = case.topology
    num_domains, num_npus = topology.num_domains, case.num_npus
    lines = [
        f"{one} {other} {rate:.0f}bps {delay_s * 1e9:.0f}ns 0"
        for one, other, rate, delay_s in _links(case)
    ]
    switches = " ".join(str(num_npus + domain) for domain in range(num_domains))
    return "\n".join([f"{num_npus + num_domains} {num_domains} {len(lines)}", switches, *lines, ""])


def settings_text(case: PlacementCase) -> str:
    """Write ns-3's settings: buffers, and ECN thresholds for each speed of links."""
    products: dict[float, float] = {}
    for _, _, rate, delay_s in _links(case):
        products[rate] = max(products.get(rate, 0.0), rate * 2.0 * delay_s / 8.0)
    speeds = sorted(products)
    buffer_mb = max(_LEAST_BUFFER_MB, math.ceil(2.0 * sum(products.values()) / 1e6))
    maps = {
        name: " ".join(
            f"{speed:.0f} {_threshold_kb(speed, products[speed], place)}" for speed in speeds
        )
        for place, name in enumerate(("KMIN_MAP", "KMAX_MAP"))
    }
    maps["PMAX_MAP"] = " ".join(f"{speed:.0f} 0.2" for speed in speeds)
    names = {"TOPOLOGY_FILE": PHYSICAL_FILE, "BUFFER_SIZE": str(buffer_mb)}
    rows = chain(
        names.items(),
        _FIXED.items(),
        ((name, f"{len(speeds)} {entries}") for name, entries in maps.items()),
    )
    return "".join(f"{key} {value}\n" for key, value in rows)


def _threshold_kb(rate_bits_per_s: float, product_bytes: float, place: int) -> int:
    least = _LEAST_THRESHOLDS_KB_PER_GBIT_PER_S[place] * rate_bits_per_s / 1e9
    return math.ceil(max(least, _PARTS_OF_PRODUCT[place] * product_bytes / 1e3))


def _links(case: PlacementCase) -> list[tuple[int, int, float, float]]:
    """Both nodes, rate [bits/s] and delay [s] of each link, hosts first."""
    topology, num_npus = case.topology, case.num_npus
    per_domain = num_npus // topology.num_domains
    links: list[tuple[int, int, float, float]] = []
    for npu in range(num_npus):
        rate, delay_s = _HOST_RATE_BITS_PER_S, _HOST_LATENCY_S
        if case.granularity == "gpu":
            inside = topology.domains[npu // per_domain]
            rate, delay_s = 8.0 * inside.intra_bandwidth_bytes_per_s, inside.intra_latency_s
        links.append((npu, num_npus + npu // per_domain, rate, delay_s))
    for index in _pairs(topology):
        link = topology.links[index]
        one, other = (num_npus + topology.index_of[name] for name in (link.source, link.target))
        links.append((one, other, 8.0 * link.bandwidth_bytes_per_s, link.latency_s))
    return links


def _pairs(topology: Topology) -> list[int]:
    """One link of each pair of domains that are joined, whose other direction is equal."""
    found = []
    for (source, target), index in topology.link_index.items():
        link, back = topology.links[index], topology.link_index.get((target, source))
        other = None if back is None else topology.links[back]
        figures = (link.bandwidth_bytes_per_s, link.latency_s)
        if other is None or figures != (other.bandwidth_bytes_per_s, other.latency_s):
            raise ValueError(
                f"ASTRA-sim's ns-3: {link}: both directions must have equal figures, as links of a "
                f"physical topology do, got {'no link back' if other is None else str(other)}"
            )
        if source < target:
            found.append(index)
    return found
