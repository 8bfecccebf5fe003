"""Measured figures as tables: on the console, in CSV files, and between the marks of a page."""

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from des.base.atomic_write import write_atomically
from des.base.csv_text import csv_text

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dev" / "performance.md"
FIGURES = ROOT / "docs" / "figures"
"""Page of the project with all sections, and the CSV files of its tables."""

PACKAGES = ("simpy", "numba", "numpy", "torch", "stable-baselines3")


class Row(Protocol):
    """A dataclass whose fields are made by `column`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one kind, and what they are about; a page may have the file of it alone."""

    title: str
    rows: Sequence[Row]
    in_page: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image file next to the page."""

    file_name: str
    caption: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Results of one part of the measurements."""

    name: str
    tables: Sequence[Table]
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    command: str | None = None

    @property
    def written_by(self) -> str:
        """Command that measures the section; a part of ``python -m bench`` without another."""
        return f"{self.command or f'python -m bench --only {self.name}'} --write"


def one_table(
    name: str, title: str, rows: Sequence[Row], note: str, *, in_page: bool = True
) -> Section:
    """Return the section of a single table with a note below it."""
    table = Table(title=title, rows=rows, in_page=in_page)
    return Section(name=name, tables=[table], notes=[note])


def column(heading: str, style: str = "") -> Any:
    """Field of a row, shown under a heading in a format; None is shown as nothing."""
    return field(metadata={"heading": heading, "style": style})


def headings(table: Table) -> list[str]:
    """Headings of the columns."""
    return [each.metadata["heading"] for each in fields(table.rows[0])]


def cells(row: Row) -> list[str]:
    """A row as text."""
    return [_shown(getattr(row, each.name), each.metadata["style"]) for each in fields(row)]


def _shown(value: object, style: str) -> str:
    return "" if value is None else format(value, style)


def machine() -> str:
    """Describe what the figures were measured on, without a date."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{_processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, {packages}."
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    text = path.read_text("utf-8") if path.exists() else ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


def show(section: Section, console: Console) -> None:
    """Print a section."""
    for table in section.tables:
        shown = RichTable(title=table.title, title_justify="left")
        for number, heading in enumerate(headings(table)):
            shown.add_column(Text(heading), justify="right" if number else "left")
        for row in table.rows:
            shown.add_row(*map(Text, cells(row)))
        console.print(shown)
    for note in section.notes:
        console.print(Text(note), soft_wrap=True)


def markdown(section: Section) -> str:
    """Return a section as Markdown, with its command and the machine."""
    blocks = [f"`{section.written_by}`. {machine()}"]
    for table in section.tables:
        if not table.in_page:
            blocks.append(f"**{table.title}**: `figures/{table_file(section, table)}`.")
            continue
        heads = headings(table)
        blocks.append(f"**{table.title}**")
        lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *map(cells, table.rows)]
        blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    blocks += section.notes
    blocks += [f"![{each.caption}]({each.file_name})" for each in section.pictures]
    return "\n\n".join(blocks)


def table_file(section: Section, table: Table) -> str:
    """Name of the CSV file of a table."""
    return f"bench_{section.name}_{re.sub(r'[^a-z0-9]+', '_', table.title.lower()).strip('_')}.csv"


def table_csv(table: Table) -> str:
    """Return a table as CSV, with all digits; None is an empty cell."""
    rows = ([getattr(row, each.name) for each in fields(row)] for row in table.rows)
    return csv_text([headings(table), *rows])


def write(section: Section, page: Path) -> None:
    """Put a section between its marks in a page, with its pictures and CSV files in the folder.

    The CSV files are in ``figures`` in the folder of the page; those of `PAGE` in `FIGURES`.
    """
    before, begin, end, after = split_page(page, section.name)
    text = f"{before}{begin}\n{markdown(section)}\n{end}{after}"
    write_atomically(page, text.encode("utf-8"))
    for picture in section.pictures:
        write_atomically(page.parent / picture.file_name, picture.content)
    figures = FIGURES if page.resolve() == PAGE else page.parent / "figures"
    figures.mkdir(exist_ok=True)
    for table in section.tables:
        write_atomically(figures / table_file(section, table), table_csv(table).encode("utf-8"))


def split_page(page: Path, name: str) -> tuple[str, str, str, str]:
    """Return what stands before a section's place, its two marks, and what stands after.

    Raises
    ------
    ValueError
        If the page has no place for the section.
    """
    begin, end = f"<!-- bench {name} -->", f"<!-- end of bench {name} -->"
    before, opened, rest = page.read_text("utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (opened and closed):
        raise ValueError(f"{page}: must hold the lines {begin!r} and {end!r}, in this order")
    return before, begin, end, after
