"""Cells after the tokens of a matrix row: CPU affinity, NUMA affinity, GPU NUMA ID.

The command prints them parted by tabs, with one more tab before a NUMA affinity of ``N/A`` and
before the GPU NUMA ID, and leaves cells empty, so neither blanks nor tabs alone tell the columns.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest

from des.base.checks import prefixed_errors
from des.devices.spans import Span, numbers_in, parse_spans

COLUMNS = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
"""Headings; older drivers print only the first, or the first two."""

NOT_KNOWN = "N/A"
_TAB = 8
_CPUS, _NODES, _MEMORY_NODE = range(3)
_FEW_NODES = 8
"""Nodes that a GPU may be near, however few CPUs its job is left."""


def tail_fields(tail: str, column: int) -> list[str] | None:
    """Split what follows the tokens at its tabs, also those that a terminal made into blanks.

    Parameters
    ----------
    tail
        Rest of the line after the last token.
    column
        Column of the terminal where it begins, counted from the label of the row.

    Returns
    -------
    list of str or None
        Cells, empty ones too; None where blanks do not end at stops of tabs.
    """
    if "\t" in tail or not tail.strip():
        return [field.strip() for field in tail.split("\t")[1:]]
    fields: list[str] = []
    at = column
    for found in re.finditer(r"\S+", tail):
        start = column + found.start()
        stops = range(at // _TAB * _TAB + _TAB, start + 1, _TAB)
        if start % _TAB or not stops:
            return None
        fields += ["", *[""] * (len(stops) - 1)]
        fields[-1] = found.group()
        at = column + found.end()
    return fields


def assign_cells(fields: list[str] | None, words: Sequence[str], count: int) -> list[str | None]:
    """Give the cells of a row to the columns of the header.

    Parameters
    ----------
    fields
        Cells at the tabs, see `tail_fields`; None where tabs tell nothing.
    words
        Cells that are not empty.
    count
        Columns that the header has.

    Raises
    ------
    ValueError
        If cells are missing or too many, or could be of several columns.

    Examples
    --------
    >>> assign_cells(["", "1", "", "N/A"], ["1", "N/A"], 3)
    [None, '1', 'N/A']
    """
    if len(words) > count:
        raise ValueError(f"must have at most {count} affinity cells, got {' '.join(words)}")
    if len(words) == count:
        return list(words)
    if not words:
        return [None] * count
    cells = _from_the_right(words, count) if fields is None else _at_tabs(fields, count)
    if cells is None:
        raise ValueError(
            f"must have {count} affinity cells ({', '.join(COLUMNS[:count])}), "
            f"got {' '.join(words)}, which could be of several columns"
        )
    return cells


def _from_the_right(words: Sequence[str], count: int) -> list[str | None] | None:
    """CPUs are what a machine leaves out first; a NUMA affinity is then a single node."""
    cells = [*[None] * (count - len(words)), *words]
    nodes = cells[_NODES] if count > _NODES else None
    return cells if nodes is None or re.fullmatch(r"\d+|N/A", nodes) else None


def _at_tabs(fields: Sequence[str], count: int) -> list[str | None] | None:
    cells: list[str | None] = [None] * count
    for place, word in enumerate(fields):
        if not word:
            continue
        is_late = place == 2 and word == NOT_KNOWN and not fields[_NODES]
        column = (
            _NODES
            if is_late
            else {0: _CPUS, 1: _NODES, 3: _MEMORY_NODE, 4: _MEMORY_NODE}.get(place, count)
        )
        if column >= count or cells[column] is not None:
            return None
        cells[column] = word
    is_whole = cells[_MEMORY_NODE] is not None if count > _MEMORY_NODE else len(fields) >= count
    return cells if is_whole else None


def parse_cells(
    cells: Sequence[str | None],
) -> tuple[tuple[Span, ...], tuple[int, ...], int | None]:
    """Read CPUs, NUMA nodes and the node of a GPU's own memory; empty and ``N/A`` are unknown.

    Raises
    ------
    ValueError
        If a cell is none of those that the command prints, naming the column.
    """
    padded = [cell if cell != NOT_KNOWN else None for cell in cells]
    for column, cell in zip_longest(COLUMNS, padded):
        if cell is not None:
            with prefixed_errors(f"{column} "):
                spans = parse_spans(cell)
            if column == COLUMNS[_MEMORY_NODE] and not cell.isdigit():
                raise ValueError(f"{column} must be one node, got {cell!r}: {spans}")
    cpu_text, node_text, memory = [*padded, None, None, None][:3]
    cpus = parse_spans(cpu_text) if cpu_text else ()
    nodes = numbers_in(parse_spans(node_text)) if node_text else ()
    if cpus and len(nodes) > max(_FEW_NODES, len(numbers_in(cpus))):
        raise ValueError(
            f"{COLUMNS[_NODES]} must be fewer nodes than there are CPUs, got {node_text} "
            f"for CPUs {cpu_text}: cells were swapped"
        )
    return cpus, nodes, int(memory) if memory else None
