"""Facts of a server as plain values for JSON."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from des.base.lazy import lazy_imports
from des.devices.closeness import relation
from des.devices.files.link_matrix import LinkMatrix
from des.devices.server import Gpu, Nic, NumaNode, Server
from des.devices.spans import format_spans, spans_of

with lazy_imports(__name__):
    from agents.devices import gpu_placement

_MOST_BEST_SETS = 8
"""Most GPUs of a server whose sets are listed."""


def facts_of(server: Server, matrix: LinkMatrix | None = None) -> dict[str, object]:
    """Return devices, matrix, NVLinks, nearest cards and NUMA nodes of a server.

    ``matrix`` is the one that it was read from: its affinities are then given as printed.
    """
    printed = dict(zip(matrix.names, matrix.affinities, strict=True)) if matrix else {}
    gpus = server.gpu_tokens
    facts: dict[str, object] = {
        "format": 1,
        "name": server.name,
        "devices": [
            *(_gpu_facts(gpu, printed.get(gpu.name)) for gpu in server.gpus),
            *(_card_facts(card) for card in server.nics),
        ],
        "affinity_columns": list(matrix.affinity_columns) if matrix else [],
        "matrix_order": list(server.device_names),
        "matrix": [list(row) for row in server.tokens],
        "relation_class": [[relation(token) for token in row] for row in server.tokens],
        "symmetric": True,
        "pcie_only": matrix is not None and matrix.is_pcie_only,
        "gpu_pair_histogram": dict(
            Counter(gpus[one][other] for one, other in combinations(range(len(gpus)), 2))
        ),
        "nvlink_count": [list(row) for row in server.nvlinks],
        "nvlink_components": [list(component) for component in server.nvlink_components],
        "nearest_nic": _nearest_cards(server),
        "numa_nodes": [_node_facts(node) for node in server.numa_nodes],
    }
    if matrix is not None and matrix.hops:
        facts |= {"link_weights": matrix.weights, "link_hops": matrix.hops}
    if _has_unequal_pairs(server.nvlinks):
        facts["best_sets_by_nvlink_sum"] = _sets_with_most_nvlinks(server)
    return facts


def _sets_with_most_nvlinks(server: Server) -> dict[str, object]:
    """All sets of 2 GPUs up to half of them with the most NVLinks inside, by size."""
    place_of = {gpu.number: place for place, gpu in enumerate(server.gpus)}
    found: dict[str, object] = {}
    for size in range(2, server.num_gpus // 2 + 1):
        sets = gpu_placement.best_sets(server, size)
        places = [[place_of[number] for number in one] for one in sets]
        found[str(size)] = {
            "nvlink_sum": sum(server.nvlinks[a][b] for a, b in combinations(places[0], 2)),
            "sets": [list(one) for one in sets],
        }
    return found


def _has_unequal_pairs(nvlinks: Sequence[Sequence[int]]) -> bool:
    """Whether some pairs of GPUs have more NVLinks than others, and the sets are few."""
    pairs = {nvlinks[one][other] for one, other in combinations(range(len(nvlinks)), 2)}
    return len(pairs) > 1 and len(nvlinks) <= _MOST_BEST_SETS


def _gpu_facts(gpu: Gpu, printed: Sequence[str | None] | None) -> dict[str, object]:
    cpus, nodes = gpu.cpus, gpu.numa_nodes
    if printed is None:
        texts: list[str | None] = [
            format_spans(cpus) or None,
            format_spans(spans_of(nodes)) or None,
        ]
    else:
        texts = [*printed, None, None][:2]
    return {
        "name": gpu.name,
        "kind": "gpu",
        "index": gpu.number,
        "model": gpu.model,
        "mig_devices": list(gpu.mig_devices),
        "cpu_affinity": texts[0],
        "cpu_ranges": [list(span) for span in cpus] or None,
        "numa_affinity": texts[1],
        "numa_nodes": list(nodes) or None,
        "gpu_numa_id": gpu.memory_numa_node,
        "nvlink_bytes_per_s": gpu.nvlink_bytes_per_s,
    }


def _card_facts(card: Nic) -> dict[str, object]:
    return {
        "name": card.name,
        "kind": "nic",
        "alias": card.device if card.device != card.name else None,
        "numa_node": card.numa_node,
        "bandwidth_bytes_per_s": card.bandwidth_bytes_per_s,
    }


def _node_facts(node: NumaNode) -> dict[str, object]:
    return {
        "node": node.number,
        "cpus": format_spans(node.cpus) or None,
        "memory_bytes": node.memory_bytes,
        "free_bytes": node.free_bytes,
        "distances": list(node.distances),
    }


def _nearest_cards(server: Server) -> dict[str, object] | None:
    nearest = [(gpu.name, server.nearest_nics(place)) for place, gpu in enumerate(server.gpus)]
    found: dict[str, object] = {
        name: {"relation": near[0], "nics": [card.name for card in near[1]]}
        for name, near in nearest
        if near is not None
    }
    return found or None
