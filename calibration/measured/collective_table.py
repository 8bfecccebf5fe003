"""Tables of measured all-reduces: JSON or CSV, read into cells, and the machines they name."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from des.base.checks import prefixed_errors, require_known
from des.base.strict_forms import StrictForm, form_errors
from des.base.strict_json import parse_json
from des.base.text_files import read_text
from des.devices.assembly import assembled, gpu_like
from des.devices.gpu_kinds import gpu_ports_named
from des.devices.patterns import square
from des.devices.presets import KIND_NAMES, simulated
from des.devices.server import Server

SHIPPED_TABLE = Path(__file__).parent / "data" / "all_reduce.json"

COLUMNS = ("node", "workers", "gpus_per_node", "bytes", "median_ms")
"""Columns of a table in CSV."""

_MACHINES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "a100_dgx": ("dgx-a100", ""),
        "a100_pairwise_nvlink": ("", "a100_pcie"),
        "h100_dgx": ("dgx-h100", ""),
        "h100_pairwise_nvlink": ("", "h100_nvl"),
    }
)
"""Kind of server that a name stands for, or GPU model of four that are bridged two and two.

ASSUMED: pairs are joined within a NUMA node. They reach as much of the PCIe rate as NCCL reckons
with inside one.
"""

NODE_KINDS = (*_MACHINES, *KIND_NAMES)
"""Names of machines that a table may have: those of the shipped one, and all kinds of servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveCell:
    """A measured all-reduce: machine, GPUs in all and in each, buffer of a GPU, median time."""

    node: str
    workers: int
    gpus_per_node: int
    payload_bytes: int
    time_s: float

    @property
    def row(self) -> tuple[str, int, int]:
        """Machine, GPUs in all and in each: what cells of several sizes share."""
        return self.node, self.workers, self.gpus_per_node

    @property
    def label(self) -> str:
        """Name of the cell in reports."""
        size = f"{self.payload_bytes / 2**20:.4g} MiB"
        return f"{self.node}, {self.workers} GPUs, {self.gpus_per_node} each, {size}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTable:
    """Cells of one file, and where they are from."""

    name: str
    source: str
    cells: tuple[CollectiveCell, ...]


class _Point(StrictForm):
    bytes: Annotated[int, Field(gt=0)]
    median_ms: Annotated[float, Field(gt=0)]


class _Machines(StrictForm):
    node: str
    workers: Annotated[int, Field(ge=2)]
    gpus_per_node: Annotated[int, Field(ge=1)]


class _Measurement(_Machines):
    points: Annotated[list[_Point], Field(min_length=1)]


class _Table(StrictForm):
    format: int
    unit: dict[str, str] = Field(default_factory=dict)
    source: str
    note: str = ""
    measurements: Annotated[list[_Measurement], Field(min_length=1)]


class _CsvRow(_Point, _Machines):
    """A row of a table in CSV, whose columns these fields are, in their order."""


@cache
def server_of_node(node: str) -> Server:
    """Make the server that a name in a table stands for.

    Raises
    ------
    ValueError
        If the name is not known; the message hints at one, or lists all.
    """
    require_known("node: unknown kind", node, NODE_KINDS)
    kind, model = _MACHINES.get(node, (node, ""))
    if kind:
        return simulated(kind)
    tokens = square(4, lambda one, other: "NV12" if one // 2 == other // 2 else "NODE")
    return assembled(tokens, gpu=gpu_like(model), node_of_gpu=(0, 0, 0, 0))


def read_measured_table(path: Path) -> CollectiveTable:
    """Read a table: CSV by the ending of its name, else JSON.

    Raises
    ------
    ValueError
        If the file cannot be read, a field is missing or wrong, a machine is not known, or GPUs do
        not fill machines; naming file, row, field, what is allowed and what came.
    """
    text = read_text(path)
    with form_errors(str(path)):
        if path.suffix.lower() == ".csv":
            cells, source = _csv_cells(text), path.name
        else:
            cells, source = _json_cells(text)
    twice = {(*cell.row, cell.payload_bytes) for cell in cells}
    if len(twice) < len(cells):
        raise ValueError(f"{path}: cells must differ in node, workers, gpus_per_node or bytes")
    return CollectiveTable(name=path.stem, source=source, cells=cells)


def _json_cells(text: str) -> tuple[tuple[CollectiveCell, ...], str]:
    parse_json(text)  # names the line and refuses a key given twice; pydantic does neither
    table = _Table.model_validate_json(text)
    found = (
        _cells(f"measurements[{number}]", row, row.points)
        for number, row in enumerate(table.measurements)
    )
    return tuple(chain.from_iterable(found)), table.source


def _csv_cells(text: str) -> tuple[CollectiveCell, ...]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise ValueError(
            f"line 1: columns must be {','.join(COLUMNS)}, got {','.join(reader.fieldnames or ())}"
        )
    cells: list[CollectiveCell] = []
    try:
        for line in reader:
            place = f"line {reader.line_num}"
            if None in line or None in line.values():
                raise ValueError(f"{place}: must have {len(COLUMNS)} cells, one a column")
            with form_errors(place):
                row = _CsvRow.model_validate(line, strict=False)
            cells += _cells(place, row, [row])
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: not CSV: {error}") from error
    if not cells:
        raise ValueError("rows must be at least one, got none")
    return tuple(cells)


def _cells(place: str, row: _Machines, points: Sequence[_Point]) -> Iterator[CollectiveCell]:
    """Cells of a row; machines that are not known, or that the GPUs do not fill, are refused."""
    node, gpus_per_node = row.node, row.gpus_per_node
    with prefixed_errors(f"{place}."):
        server = server_of_node(node)
    with prefixed_errors(f"{place}.node: {node} has no GPU model with ports: "):
        gpu_ports_named(server.gpus[0].model)
    if gpus_per_node > server.num_gpus:
        raise ValueError(
            f"{place}.gpus_per_node: must be at most {server.num_gpus} for {node}, "
            f"got {gpus_per_node}"
        )
    if row.workers % gpus_per_node:
        raise ValueError(
            f"{place}.workers: must be a multiple of gpus_per_node, got {row.workers} and "
            f"{gpus_per_node}"
        )
    for point in points:
        yield CollectiveCell(
            node=node,
            workers=row.workers,
            gpus_per_node=gpus_per_node,
            payload_bytes=point.bytes,
            time_s=point.median_ms * 1e-3,
        )
