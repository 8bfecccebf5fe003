"""Tables of one simulated iteration for the terminal."""

from __future__ import annotations

from typing import IO

from des import IterationResult
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from rich import table as rich_table
    from rich.console import Console

    from des.base import console as base_console


def plain_console(file: IO[str]) -> Console:
    """Return a console that prints names and paths as they are, brackets and colons included."""
    return base_console.FittedConsole(file)


def stage_table(result: IterationResult) -> rich_table.Table:
    """Times of each stage in the iteration, and the memory of its domain."""
    memory_of = {memory.domain: memory for memory in result.memory}
    table = rich_table.Table(
        title="Stages (memory: all stages of the domain)", title_justify="left"
    )
    add_columns(table, "domain", "layers", "busy s", "idle s", "memory GB", "of GB")
    for stage in result.stages:
        memory = memory_of[stage.domain]
        table.add_row(
            stage.domain,
            f"{stage.first_layer}-{stage.first_layer + stage.num_layers - 1}",
            f"{stage.busy_s:.3f}",
            f"{stage.idle_s:.3f}",
            f"{memory.required_bytes / 1e9:.1f}",
            f"{memory.capacity_bytes / 1e9:.1f}",
        )
    return table


def link_table(result: IterationResult) -> rich_table.Table:
    """Traffic of each link direction in use."""
    table = rich_table.Table(title="Links in use", title_justify="left")
    add_columns(table, "link", "messages", "GB", "busy s", "of the makespan")
    for link in result.links:
        if link.num_messages:
            table.add_row(
                f"{link.source}->{link.target}",
                str(link.num_messages),
                f"{link.num_bytes / 1e9:.3f}",
                f"{link.busy_s:.3f}",
                f"{link.busy_s / result.makespan_s:.1%}",
            )
    return table


def add_columns(table: rich_table.Table, name: str, *numbers: str) -> None:
    """Add a column of text and columns of numbers."""
    table.add_column(name)
    for number in numbers:
        table.add_column(number, justify="right")
