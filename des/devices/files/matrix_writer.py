"""Writer of a server as ``nvidia-smi topo -m`` prints it."""

from des.devices.files.affinity_cells import COLUMNS, NOT_KNOWN
from des.devices.files.link_matrix import is_numbered
from des.devices.server import Gpu, Server
from des.devices.spans import format_spans, spans_of


def matrix_text(server: Server) -> str:
    """Write header, rows and the legend of the cards; `matrix_text.read_matrix` reads the same.

    What the matrix has no cell for is left out: models, rates, and NUMA nodes with their memory.

    Examples
    --------
    >>> matrix_text(Server(name="one", gpus=(Gpu(number=0),), tokens=(("X",),))).split("\\n")[1]
    'GPU0\\t X \\t\\t\\tN/A\\t\\tN/A'
    """
    header = "\t".join(["", *server.device_names, *COLUMNS])
    rows = [
        "\t".join([name, *(" X " if token == "X" else token for token in tokens)])
        for name, tokens in zip(server.device_names, server.tokens, strict=True)
    ]
    tails = [f"\t{_tail(gpu)}" for gpu in server.gpus]
    tails += ["\t\t\t\t"] * len(server.nics)
    lines = [header, *(row + tail for row, tail in zip(rows, tails, strict=True))]
    legend = [
        f"  {card.name}: {card.device}"
        for card in server.nics
        if card.device and is_numbered(card.name)
    ]
    if legend:
        lines += ["", "NIC Legend:", "", *legend]
    return "\n".join(lines) + "\n"


def _tail(gpu: Gpu) -> str:
    """Affinity cells, with the tabs that the command puts before ``N/A`` and the last one."""
    nodes = format_spans(spans_of(gpu.numa_nodes)) or f"\t{NOT_KNOWN}"
    memory = NOT_KNOWN if gpu.memory_numa_node is None else str(gpu.memory_numa_node)
    return f"{format_spans(gpu.cpus)}\t{nodes}\t\t{memory}"
