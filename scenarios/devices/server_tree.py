"""Tree of a server as text: NUMA nodes, their GPUs, and the cards nearest to each."""

from collections import defaultdict

from des.devices.closeness import XGMI_TOKENS
from des.devices.server import Gpu, NumaNode, Server
from des.devices.spans import format_spans, spans_of

_GIB = 2.0**30


def tree_text(server: Server) -> str:
    """Return a tree of one line per NUMA node, GPU and card that is near no GPU."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, gpu in enumerate(server.gpus):
        groups[gpu.numa_nodes].append(place)
    known = {node.number: node for node in server.numa_nodes}
    branches: list[tuple[str, list[str]]] = []
    for nodes in sorted({*groups, *((number,) for number in known)}):
        leaves = [_gpu_line(server, place) for place in groups.get(nodes, [])]
        branches.append((_node_line(nodes, known), leaves))
    far = _far_cards(server)
    if far:
        branches.append((f"near no GPU: {', '.join(far)}", []))
    lines = [_title(server)]
    for number, (text, leaves) in enumerate(branches, start=1):
        is_last = number == len(branches)
        lines.append(f"{'└─' if is_last else '├─'} {text}")
        for count, leaf in enumerate(leaves, start=1):
            stem = "   " if is_last else "│  "
            lines.append(f"{stem}{'└─' if count == len(leaves) else '├─'} {leaf}")
    return "\n".join(lines) + "\n"


def _title(server: Server) -> str:
    sets = [
        format_spans(spans_of(server.gpus[place].number for place in component))
        for component in server.nvlink_components
        if len(component) > 1
    ]
    is_amd = any(token in XGMI_TOKENS for row in server.gpu_tokens for token in row)
    link = "XGMI" if is_amd else "NVLink"
    linked = f"; joined by {link}: GPUs {' and '.join(sets)}" if sets else f"; no {link}"
    return f"{server.name}: {server.num_gpus} GPUs, {len(server.nics)} network cards{linked}"


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
    links: dict[tuple[int, str], list[int]] = defaultdict(list)
    for other, count in enumerate(server.nvlinks[place]):
        if count:
            token = server.gpu_tokens[place][other]
            links[count, token].append(server.gpus[other].number)
    parts += [
        f"{token} to {format_spans(spans_of(others))}"
        for (_, token), others in sorted(links.items())
    ]
    near = server.nearest_nics(place)
    if near is not None:
        parts.append(f"{near[0]} {','.join(card.name for card in near[1])}")
    return "; ".join(parts)


def _far_cards(server: Server) -> list[str]:
    near = {
        card.name
        for place in range(server.num_gpus)
        for card in (server.nearest_nics(place) or ("X", ()))[1]
    }
    return [card.name for card in server.nics if card.name not in near]
