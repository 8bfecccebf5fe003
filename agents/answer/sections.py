"""Sections of a page: headed lines and a table each, written as text or as HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page.

    Attributes
    ----------
    head, rows
        Columns of a table and its rows; none without a table.
    notes
        Lines below the table.
    num_texts
        First columns, which are texts and begin at the left; figures end at the right.
    """

    title: str
    lines: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    num_texts: int = 1


def as_text(sections: Sequence[Section], width: int | None = None) -> str:
    """Write sections below each other, tables in columns.

    Where a width is given, a table leaves its last columns out that go beyond it, and says so.

    Examples
    --------
    >>> table = Section(title="Sites", head=("site", "GPUs", "peak"), rows=(("East", "28", "312"),))
    >>> print(as_text([table], 16))
    Sites
      site  GPUs
      East    28
      left out at 16 columns: peak; COLUMNS=18 shows all
    """
    return "\n\n".join("\n".join(_text_lines(section, width)) for section in sections)


def as_html(sections: Sequence[Section]) -> str:
    """Write sections as HTML, for notebooks."""
    return "\n".join("\n".join(_html_lines(section)) for section in sections)


def _text_lines(section: Section, width: int | None) -> list[str]:
    found = [section.title, *(f"  {line}" for line in section.lines)]
    if section.rows:
        table = [section.head, *section.rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        ends = list(accumulate(2 + each for each in widths))
        num = max(section.num_texts, sum(end <= (width or ends[-1]) for end in ends))
        shown = widths[:num]
        found += [f"  {_align(row[:num], shown, section.num_texts)}".rstrip() for row in table]
        if num < len(widths):
            names = ", ".join(section.head[num:])
            found.append(f"  left out at {width} columns: {names}; COLUMNS={ends[-1]} shows all")
    return found + [f"  {note}" for note in section.notes]


def _align(row: Sequence[str], widths: Sequence[int], num_texts: int) -> str:
    """Texts to the left, figures to the right."""
    both = enumerate(zip(row, widths, strict=True))
    return "  ".join(
        cell.ljust(width) if place < num_texts else cell.rjust(width)
        for place, (cell, width) in both
    )


def _html_lines(section: Section) -> list[str]:
    found = [f"<h4>{escape(section.title)}</h4>"]
    found += [f"<p>{escape(line)}</p>" for line in section.lines]
    if section.rows:
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in section.head)
        found += ["<table>", f"<tr>{cells}</tr>"]
        for row in section.rows:
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
            found.append(f"<tr>{cells}</tr>")
        found.append("</table>")
    return found + [f"<p>{escape(note)}</p>" for note in section.notes]
