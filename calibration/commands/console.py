"""The console that tables and lines go to."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

_FILE_WIDTH = 140
"""Of tables whose output is no terminal."""


def console() -> Console:
    """Make a console on stdout that prints names as they are, brackets and colons included."""
    width = None if sys.stdout.isatty() else _FILE_WIDTH
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def say(text: str) -> None:
    """Print a line as it is, at once: what follows may take long."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def console_table(title: str, names: tuple[str, ...], *numbers: str) -> Table:
    """Make a table with columns of names on the left and of numbers on the right."""
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name)
    for number in numbers:
        table.add_column(number, justify="right")
    return table


def progress_bar(what: str) -> Progress:
    """Make a bar on stderr, which only a terminal shows."""
    stderr = Console(stderr=True)
    return Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=stderr,
        disable=not stderr.is_terminal,
        transient=True,
    )
