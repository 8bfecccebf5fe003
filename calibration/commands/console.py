"""The console that tables and lines go to."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from des.base.atomic_write import write_together
from des.base.document import DOCUMENT
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from rich import console as rich_console
    from rich import progress as rich_progress
    from rich import table as rich_table
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from des.base import console as base_console


def console() -> Console:
    """Make a console on stdout that prints names as they are, brackets and colons included."""
    return base_console.FittedConsole()


def say(text: str) -> None:
    """Print a line as it is, at once: what follows may take long."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_and_say(out: Path, files: Mapping[str, bytes], **said: object) -> None:
    """Write files into a folder, all or none; say so, with ``said`` in the document too."""
    out.mkdir(parents=True, exist_ok=True)
    write_together({out / name: content for name, content in files.items()})
    DOCUMENT.add(**said, files=[out / name for name in files])
    for name in files:
        say(f"written: {out / name}")


def console_table(title: str, names: tuple[str, ...], *numbers: str) -> Table:
    """Make a table with columns of names on the left and of numbers on the right."""
    table = rich_table.Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name)
    for number in numbers:
        table.add_column(number, justify="right")
    return table


def progress_bar(what: str) -> Progress:
    """Make a bar on stderr, which only a terminal shows."""
    stderr = rich_console.Console(stderr=True)
    return rich_progress.Progress(
        rich_progress.TextColumn(what),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(),
        console=stderr,
        disable=not stderr.is_terminal,
        transient=True,
    )
