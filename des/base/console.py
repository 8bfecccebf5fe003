"""Console as wide as the terminal, 80 columns in pipes and files, on which no table is cut."""

from __future__ import annotations

import sys
import textwrap
from itertools import chain
from typing import IO, Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from des.base.help_text import terminal_width

_UNBOUNDED = 100_000
"""Width at which nothing is broken."""


class FittedConsole(Console):
    """A console that leaves columns of too wide tables out and says so, and breaks long lines.

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
        """Print as `rich.console.Console.print`, of a table the columns that fit, and say so."""
        for each in objects or ("",):
            if isinstance(each, Table):
                part, left_out = fitted(each, self)
                self._print_whole(part, settings)
                if left_out:
                    super().print(_broken(left_out, self.width), soft_wrap=True)
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


def fitted(table: Table, console: Console) -> tuple[Table, str]:
    """The columns of a table that fit a console, at least two, and a sentence on the others.

    Words weigh less than numbers, and of each the last column least; one without a heading belongs
    to that before it. A table that fits by breaking cells at blanks stays whole.
    """
    least, columns = _least_widths(table, console), table.columns
    border = int(table.box is not None)  # on the right
    kept: list[list[int]] = []
    for number, column in enumerate(columns):
        if number > 0 and not str(column.header):
            kept[-1].append(number)
        else:
            kept.append([number])
    left_out: list[int] = []
    while len(kept) > 2 and sum(least[one] for one in chain(*kept)) > console.width - border:
        words = [own for own in kept[1:] if all(columns[one].justify != "right" for one in own)]
        last = (words or kept)[-1]
        kept.remove(last)
        left_out.append(last[0])
    if not left_out:
        return table, ""
    names = ", ".join(str(columns[one].header) for one in sorted(left_out))
    said = f"left out at {console.width} columns: {names}; COLUMNS={sum(least) + border} shows them"
    return _with_columns(table, list(chain(*kept))), said


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


def _with_columns(table: Table, numbers: list[int]) -> Table:
    names = ("box", "show_header", "padding", "pad_edge", "title", "title_justify", "title_style")
    settings: dict[str, Any] = {name: getattr(table, name) for name in names}
    part = Table(**settings)
    for number in numbers:
        column = table.columns[number]
        part.add_column(
            column.header,
            justify=column.justify,
            style=column.style,
            no_wrap=column.no_wrap or column.justify == "right" or number == 0,
        )
    cells = [list(table.columns[number].cells) for number in numbers]
    for row, texts in zip(table.rows, zip(*cells, strict=True), strict=True):
        part.add_row(*texts, style=row.style, end_section=row.end_section)
    return part
