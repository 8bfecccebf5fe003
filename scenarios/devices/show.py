"""Show a server: its matrix, its tree, a picture, or all facts as JSON."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from des.base.atomic_write import write_atomically
from des.base.flags import option
from des.base.grouping import grouped
from des.base.lazy import lazy_imports
from des.base.names import counted
from des.devices.closeness import XGMI_TOKENS, relation
from des.devices.files.link_matrix import LinkMatrix, matrix_text
from des.devices.server import Gpu, Nic, NumaNode, Server
from des.devices.spans import format_spans, spans_of
from scenarios.devices.cluster_tree import Branch, tree_lines
from scenarios.devices.placement_flags import tell
from scenarios.devices.sources import ServerFlags, read_source

with lazy_imports(__name__):
    from agents.devices import gpu_placement
    from des.figures import paper
    from scenarios.devices import pictures


EXAMPLES = """\
examples:
  python -m scenarios.devices show --file topo.txt
  python -m scenarios.devices show --file topo.txt,numactl.txt --json
  python -m scenarios.devices show --simulate dgx-1-v100 --format tree
  python -m scenarios.devices show --simulate dgx-h100 --picture server.svg
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ServerFlags):
    """Flags of what is shown."""

    format: Literal["both", "matrix", "tree"] = option(
        "both", "matrix as nvidia-smi topo -m prints it, tree of NUMA nodes, or both"
    )
    picture: Path | None = option(None, "file for a picture of the matrix, .png or .svg")
    json: bool = option(False, "print all facts as JSON, and nothing else")


def run(config: Config) -> None:
    """Print the server, and write its picture."""
    if config.picture is not None:
        pictures.check_picture_name(config.picture)
        figure = pictures.server_figure(read_source(config)[0])
        ending = config.picture.suffix.removeprefix(".")
        write_atomically(config.picture, paper.image_bytes(figure, ending))
    if config.json:
        tell(facts_of(*read_source(config)))
        return
    server, matrix = read_source(config)
    if matrix is not None and matrix.is_pcie_only:
        sys.stderr.write("note: a matrix of topo -mp, which leaves NVLinks out\n")
    texts = {"matrix": matrix_text(server), "tree": tree_text(server)}
    shown = texts.values() if config.format == "both" else [texts[config.format]]
    tell("\n".join(shown))


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


_GIB = 2.0**30


def tree_text(server: Server) -> str:
    """Return a tree of one line per NUMA node, GPU and card that is near no GPU."""
    groups = grouped((gpu.numa_nodes, place) for place, gpu in enumerate(server.gpus))
    known = {node.number: node for node in server.numa_nodes}
    branches: list[Branch] = []
    for nodes in sorted({*groups, *((number,) for number in known)}):
        leaves = [(_gpu_line(server, place), ()) for place in groups.get(nodes, [])]
        branches.append((_node_line(nodes, known), leaves))
    far = [card.name for card in server.nics if card not in server.near_nics]
    if far:
        branches.append((f"near no GPU: {', '.join(far)}", ()))
    return "\n".join((_title(server), *tree_lines(branches))) + "\n"


def _title(server: Server) -> str:
    sets = [
        format_spans(spans_of(server.gpus[place].number for place in component))
        for component in server.nvlink_components
        if len(component) > 1
    ]
    is_amd = any(token in XGMI_TOKENS for row in server.gpu_tokens for token in row)
    link = "XGMI" if is_amd else "NVLink"
    linked = f"; joined by {link}: GPUs {' and '.join(sets)}" if sets else f"; no {link}"
    cards = counted(len(server.nics), "network card")
    return f"{server.name}: {counted(server.num_gpus, 'GPU')}, {cards}{linked}"


def _node_line(nodes: tuple[int, ...], known: dict[int, NumaNode]) -> str:
    if not nodes:
        return "NUMA node not known"
    text = f"NUMA node {','.join(map(str, nodes))}"
    node = known.get(nodes[0]) if len(nodes) == 1 else None
    if node is None:
        return text
    parts = [f"CPUs {format_spans(node.cpus)}" if node.cpus else "no CPUs"]
    if node.memory_bytes is not None:
        parts.append(f"{node.memory_bytes / _GIB:.1f} GiB")
    if node.free_bytes is not None:
        parts.append(f"{node.free_bytes / _GIB:.1f} GiB free")
    return f"{text}: {', '.join(parts)}"


def _gpu_line(server: Server, place: int) -> str:
    gpu: Gpu = server.gpus[place]
    parts = [gpu.name + (f" ({gpu.model})" if gpu.model else "")]
    if gpu.mig_devices:
        parts.append(f"divided into MIG {', '.join(gpu.mig_devices)}")
    row = zip(server.nvlinks[place], server.gpu_tokens[place], server.gpus, strict=True)
    links = grouped(((count, token), other.number) for count, token, other in row if count)
    parts += [
        f"{token} to {format_spans(spans_of(others))}"
        for (_, token), others in sorted(links.items())
    ]
    near = server.nearest_nics(place)
    if near is not None:
        parts.append(f"{near[0]} {','.join(card.name for card in near[1])}")
    return "; ".join(parts)
