"""Reader of ``nvidia-smi topo -m`` and ``-mp``: the table is found in whatever text is around it.

``-mp`` prints PCIe alone: where NVLinks join two GPUs, it has the token of the path on PCIe.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from des.base.checks import prefixed_errors
from des.devices.closeness import relation
from des.devices.files.affinity_cells import COLUMNS, assign_cells, tail_fields
from des.devices.files.link_matrix import LinkMatrix

_GPU = re.compile(r"GPU\d+")
_NAME = re.compile(r"[A-Za-z][\w.:-]*")
_TAIL = re.compile(r"CPU\s*Affinity.*")
_GLUED_NAMES = re.compile(r"(?:GPU\d+|NIC\d+|[a-z]+\d+_\d+){2,}")
_GLUED_TOKENS = re.compile(r"(?:X|NV\d{1,2}|PIX|PXB|PHB|NODE|SYS|SOC){2,}")
_LEGEND = re.compile(r"\s*(NIC\d+)\s*:\s*(\S+)\s*")
_P2P = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})
"""States that ``topo -p2p`` prints."""

_Row = tuple[tuple[str, ...], tuple[str | None, ...] | None]
"""Tokens and affinity cells of a row; None where the line ends after the tokens."""


@dataclass(slots=True, kw_only=True)
class _Table:
    """Header of a table and the lines below it that could be its rows; lines count from 1."""

    line: int
    names: list[str]
    tail: str
    rows: list[tuple[int, str]] = field(default_factory=list)
    ended_by: str = ""

    @property
    def is_of_p2p(self) -> bool:
        """Whether it holds states of peer access, as of ``topo -p2p``, in place of tokens."""
        return any(_P2P & set(text.split()) for _, text in self.rows)


def read_matrix(lines: Sequence[str], *, strict: bool = False) -> LinkMatrix:
    """Read the one matrix in some lines.

    Parameters
    ----------
    lines
        Plain lines, see `des.devices.files.pasted`.
    strict
        Refuse a header that lost its tabs. It is otherwise read by the labels of the rows, if these
        spell the header letter by letter.

    Raises
    ------
    ValueError
        If there is no matrix or several, or it is damaged: names line, row and cell.
    """
    _refuse_mig_devices(lines)
    table = _only_matrix(_tables(lines))
    columns = _affinity_columns(table, strict=strict)
    names = _names(table, strict=strict)
    rows: dict[str, _Row] = {}
    for line, text in table.rows:
        label = text.split()[0]
        if label not in names or label in rows:
            wrong = "given twice" if label in rows else f"not in the header, {' '.join(names)}"
            raise ValueError(f"line {line}: row {label} is {wrong}")
        with prefixed_errors(f"line {line}: row {label} "):
            rows[label] = _row(text, len(names), len(columns))
    _check_rows(table, names, rows)
    return LinkMatrix(
        names=tuple(names),
        tokens=tuple(rows[name][0] for name in names),
        affinity_columns=columns,
        affinities=tuple(rows[name][1] or (None,) * len(columns) for name in names),
        device_of_card=_legend(lines, table.rows[-1][0], names),
        is_pcie_only=_is_legend_of_pcie(lines[table.rows[-1][0] :]),
    )


def _refuse_mig_devices(lines: Sequence[str]) -> None:
    """Refuse a matrix with rows or columns of MIG devices, which are parts of the GPUs beside."""
    for number, text in enumerate(lines, start=1):
        words = text.split()
        named = next((word for word in words if word.startswith("MIG")), None)
        if named and (words[0].startswith("GPU") or any(_is_token(word) for word in words)):
            raise ValueError(
                f"line {number}: rows and columns must be of whole GPUs and network cards, got the "
                f"MIG device {named}"
            )


def has_matrix(lines: Sequence[str]) -> bool:
    """Whether some lines hold a table of GPUs, damaged or not."""
    return bool(_tables(lines))


def _tables(lines: Sequence[str]) -> list[_Table]:
    """Find headers and the rows below each: a table ends at the first line that is neither."""
    tables: list[_Table] = []
    is_open = False
    for number, text in enumerate(lines, start=1):
        header = _header(text)
        if header is not None:
            tables.append(_Table(line=number, names=header[0], tail=header[1]))
            is_open = True
        elif is_open and text.strip():
            is_open = _is_row(text.split(), tables[-1].names)
            if is_open:
                tables[-1].rows.append((number, text))
            elif not text.strip().lower().startswith("legend"):
                tables[-1].ended_by = text.strip()[:40]
    return [table for table in tables if table.rows]


def _header(text: str) -> tuple[list[str], str] | None:
    """Split a header into names of devices and the rest; None if the line is none."""
    found = _TAIL.search(text)
    names = text[: found.start()].split() if found else text.split()
    if not names or not _GPU.match(names[0]) or any(_is_token(name) for name in names):
        return None
    is_name = all(_NAME.fullmatch(name) for name in names)
    if not is_name or (not found and not all(re.search(r"\d", name) for name in names)):
        return None
    return names, found.group() if found else ""


def _is_row(words: Sequence[str], names: Sequence[str]) -> bool:
    return len(words) > 1 and (
        words[0] in names or _is_token(words[1]) or _GPU.fullmatch(words[0]) is not None
    )


def _is_token(word: str) -> bool:
    try:
        relation(word)
    except ValueError:
        return False
    return True


def _only_matrix(tables: Sequence[_Table]) -> _Table:
    matrices = [table for table in tables if not table.is_of_p2p]
    if tables and not matrices:
        raise ValueError(
            f"line {tables[0].line}: must be the matrix of topo -m, got that of topo -p2p"
        )
    if len(matrices) != 1:
        at = f", at lines {', '.join(str(table.line) for table in matrices)}" if matrices else ""
        raise ValueError(
            "must hold one matrix of nvidia-smi topo -m, with a header such as "
            f"'GPU0 GPU1 CPU Affinity', got {len(matrices) or 'none'}{at}"
        )
    return matrices[0]


def _affinity_columns(table: _Table, *, strict: bool) -> tuple[str, ...]:
    """Headings after the devices; lenient ones may be glued."""
    for count in range(len(COLUMNS) + 1):
        wanted, got = " ".join(COLUMNS[:count]), " ".join(table.tail.split())
        if got == wanted or (not strict and got.replace(" ", "") == wanted.replace(" ", "")):
            return COLUMNS[:count]
    raise ValueError(
        f"line {table.line}: header must end with {', '.join(COLUMNS)} or the first of them, "
        f"got {' '.join(table.tail.split())!r}"
    )


def _names(table: _Table, *, strict: bool) -> list[str]:
    """Devices of the columns: of the header, or of the rows if the header only lost its tabs."""
    names, labels = table.names, [text.split()[0] for _, text in table.rows]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"line {table.line}: header names {', '.join(twice)} twice")
    glued = [name for name in names if name not in labels and _GLUED_NAMES.fullmatch(name)]
    if not glued:
        return names
    if "".join(labels) != "".join(names):
        raise ValueError(
            f"line {table.line}: header has glued names, {', '.join(glued)}{_first_glued(table)}"
        )
    if strict:
        raise ValueError(
            f"line {table.line}: header lost its tabs: {', '.join(glued)}; the labels of the rows "
            "name the same devices, which a strict reading does not take"
        )
    return labels


def _first_glued(table: _Table) -> str:
    """Name the first row with tokens that are glued, if any."""
    for line, text in table.rows:
        for word in text.split()[1:]:
            if _GLUED_TOKENS.fullmatch(word) and not _is_token(word):
                return f"; line {line}: row {text.split()[0]} has glued tokens, {word}"
    return ""


def _row(text: str, num_tokens: int, num_columns: int) -> _Row:
    """Read a row; errors begin after its name."""
    words = list(re.finditer(r"\S+", text))
    label, rest = words[0], words[1:]
    count = next((n for n, word in enumerate(rest) if not _is_token(word.group())), len(rest))
    if count != num_tokens:
        then = f" and then {rest[count].group()!r}" if count < len(rest) else ""
        is_glued = then and _GLUED_TOKENS.fullmatch(rest[count].group())
        raise ValueError(
            f"must have {num_tokens} tokens, as many as the header has devices, got {count}{then}"
            + (", glued tokens" if is_glued else "")
        )
    end = words[count].end() + (
        words[count].group() == "X" and text[words[count].end() :][:1] == " "
    )
    fields = tail_fields(text[end:], end - label.start())
    cells = [word.group() for word in rest[count:]]
    if not cells and len(fields or ()) < max(1, num_columns):
        return tuple(word.group() for word in rest), None
    return (
        tuple(word.group() for word in rest[:count]),
        tuple(assign_cells(fields, cells, num_columns)),
    )


def _check_rows(table: _Table, names: Sequence[str], rows: dict[str, _Row]) -> None:
    """Refuse rows that are missing, and GPUs whose lines end early."""
    missing = [name for name in names if name not in rows]
    if missing:
        ended = f"; the table ends before {table.ended_by!r}" if table.ended_by else ""
        raise ValueError(f"line {table.line}: rows missing: {', '.join(missing)}{ended}")
    short = [name for name in names if _GPU.fullmatch(name) and rows[name][1] is None]
    if short and any(
        cells for name in names for cells in (rows[name][1] or ()) if _GPU.match(name)
    ):
        raise ValueError(
            f"line {table.line}: rows of {', '.join(short)} end before their affinity cells"
        )
    is_card = [not _GPU.fullmatch(name) for name in names]
    if is_card != sorted(is_card):
        raise ValueError(f"line {table.line}: header must name GPUs first, got {' '.join(names)}")


def _legend(
    lines: Sequence[str], last_row: int, names: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Read what the system calls the cards, below the table."""
    device_of: dict[str, str] = {}
    for number, text in enumerate(lines[last_row:], start=last_row + 1):
        found = _LEGEND.fullmatch(text)
        if found:
            label, device = found.groups()
            if label not in names:
                raise ValueError(f"line {number}: legend names {label}, which has no row")
            if device_of.setdefault(label, device) != device:
                raise ValueError(
                    f"line {number}: legend names {label} both {device_of[label]} and {device}"
                )
    return tuple(device_of.items())


def _is_legend_of_pcie(lines: Sequence[str]) -> bool:
    """Whether there is a legend of tokens, and NVLinks are not in it."""
    known = {text.split("=")[0].strip() for text in lines if "=" in text}
    return {"X", "PIX"} <= known and "NV#" not in known
