"""Console as wide as the terminal, 80 columns in pipes and files, on which no table is cut."""

from __future__ import annotations

import sys
import textwrap
from typing import IO, Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from des.base.help_text import terminal_width

_UNBOUNDED = 100_000
"""Width at which nothing is broken."""


class FittedConsole(Console):
    """A console that parts tables that are too wide, and breaks long lines at blanks.

    Names and paths are printed as they are, brackets and colons included. Words that are longer
    than a line, such as paths, stay whole, in tables too.

    Parameters
    ----------
    file
        Where it prints to; None: standard output as it is then.
    stderr
        Whether it prints to standard error instead.
    """

    def __init__(self, file: IO[str] | None = None, *, stderr: bool = False) -> None:
        stream = file or (sys.stderr if stderr else sys.stdout)
        super().__init__(
            file=file,
            stderr=stderr,
            width=None if stream.isatty() else terminal_width(),
            markup=False,
            highlight=False,
            emoji=False,
        )

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print as `rich.console.Console.print`, a table in parts where it is too wide."""
        for each in objects or ("",):
            if isinstance(each, Table):
                for part in parted(each, self):
                    self._print_whole(part, settings)
            elif isinstance(each, str):
                super().print(_broken(each, self.width), **settings | {"soft_wrap": True})
            else:
                super().print(each, **settings)

    def _print_whole(self, table: Table, settings: dict[str, Any]) -> None:
        """Print a table as wide as the console, or as its longest words need."""
        width = self._width
        needed = sum(_least_widths(table, self)) + (table.box is not None)
        try:
            self.width = max(self.width, needed)
            super().print(table, **settings)
        finally:
            self._width = width


def _broken(text: str, width: int) -> str:
    lines = [
        textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        if len(line) > width
        else [line]
        for line in text.split("\n")
    ]
    return "\n".join(each for line in lines for each in line)


def parted(table: Table, console: Console) -> list[Table]:
    """Parts of a table that fit a console: the first column in each, the others once.

    A table that fits by breaking cells at blanks is its only part.
    """
    least = _least_widths(table, console)
    room = console.width - (table.box is not None)  # the border on the right
    if sum(least) <= room or len(least) < 3:
        return [table]
    groups: list[list[int]] = [[0]]
    for column in range(1, len(least)):
        if len(groups[-1]) > 1 and sum(least[one] for one in [*groups[-1], column]) > room:
            groups.append([0])
        groups[-1].append(column)
    return [_with_columns(table, group, is_first=group is groups[0]) for group in groups]


def _least_widths(table: Table, console: Console) -> list[int]:
    """Characters that each column needs, with its padding and its part of the border."""
    around = 3 if table.box is not None else sum(table.padding[1::2])
    options = console.options.update(width=_UNBOUNDED)
    widths = []
    for number, column in enumerate(table.columns):
        is_whole = column.no_wrap or column.justify == "right" or number == 0
        measured = [
            Measurement.get(console, options, cell) for cell in (column.header, *column.cells)
        ]
        widths.append(max(one.maximum if is_whole else one.minimum for one in measured) + around)
    return widths


def _with_columns(table: Table, columns: list[int], *, is_first: bool) -> Table:
    names = ("box", "show_header", "padding", "pad_edge", "title_justify", "title_style")
    settings: dict[str, Any] = {name: getattr(table, name) for name in names}
    part = Table(title=table.title if is_first else None, **settings)
    for number in columns:
        column = table.columns[number]
        part.add_column(
            column.header,
            justify=column.justify,
            style=column.style,
            no_wrap=column.no_wrap or column.justify == "right" or number == 0,
        )
    cells = [list(table.columns[number].cells) for number in columns]
    for row, texts in zip(table.rows, zip(*cells, strict=True), strict=True):
        part.add_row(*texts, style=row.style, end_section=row.end_section)
    return part
