"""Matrix of ``nvidia-smi topo -m`` or ``rocm-smi --showtopo``, and its server.

It is written as ``nvidia-smi topo -m`` prints it.
"""

from dataclasses import dataclass

from des.base.checks import prefixed_errors
from des.devices.files.affinity_cells import COLUMNS, NOT_KNOWN, parse_cells
from des.devices.server import Gpu, Nic, Server
from des.devices.spans import format_spans, spans_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkMatrix:
    """Cells of the matrix, by row; the devices of the columns are those of the rows.

    Attributes
    ----------
    names
        Labels of the rows: GPUs first, then network cards.
    affinity_columns
        Headings after the devices, up to three.
    affinities
        Cells below those headings, by row; None where they are empty.
    device_of_card
        Legend of the cards: label and what the system calls it.
    is_pcie_only
        Whether the legend below has no NVLinks, as that of ``topo -mp``, which leaves them out.
    weights, hops
        Tables of ``rocm-smi --showtopo``; empty for NVIDIA's GPUs.
    """

    names: tuple[str, ...]
    tokens: tuple[tuple[str, ...], ...]
    affinity_columns: tuple[str, ...]
    affinities: tuple[tuple[str | None, ...], ...]
    device_of_card: tuple[tuple[str, str], ...] = ()
    is_pcie_only: bool = False
    weights: tuple[tuple[int, ...], ...] = ()
    hops: tuple[tuple[int, ...], ...] = ()

    def server(self, name: str) -> Server:
        """Return the server that the matrix describes.

        Raises
        ------
        ValueError
            If the matrix is not symmetric or its diagonal not ``X``, or a cell says nothing known.
        """
        gpus = []
        device_of = dict(self.device_of_card)
        for label, cells in zip(self.names, self.affinities, strict=True):
            with prefixed_errors(f"{name}: row {label}: "):
                cpus, nodes, memory_node = parse_cells(cells)
            if label.startswith("GPU"):
                gpus.append(
                    Gpu(
                        number=int(label.removeprefix("GPU")),
                        cpus=cpus,
                        numa_nodes=nodes,
                        memory_numa_node=memory_node,
                    )
                )
        cards = [
            Nic(name=label, device=device_of.get(label, None if is_numbered(label) else label))
            for label in self.names[len(gpus) :]
        ]
        return Server(name=name, gpus=tuple(gpus), nics=tuple(cards), tokens=self.tokens)


def is_numbered(label: str) -> bool:
    """Whether a card has a number of the driver's, such as NIC3, in place of the system's name."""
    return label.startswith("NIC") and label.removeprefix("NIC").isdigit()


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
