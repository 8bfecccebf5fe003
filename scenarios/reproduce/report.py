"""Report of a reproduction: a table, a picture, and a verdict on each bound stated beforehand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from des.base.document import DOCUMENT
from des.figures.figure import Figure
from scenarios.frame.outputs import OutputChoice, write_files
from scenarios.frame.report import PageTable, Repetition, Report
from scenarios.iteration.iteration_tables import plain_console


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A bound stated beforehand, what came, and whether it is met.

    ``target`` is a stricter aim than the bound, where there is one. A target that is missed is
    said, and does not fail the reproduction.
    """

    name: str
    measured: str
    allowed: str
    met: bool
    target: str = ""
    target_met: bool = True

    @classmethod
    def at_least(
        cls,
        name: str,
        measured: float,
        allowed: float,
        *,
        recorded: float | None = None,
        shown: str = ".4g",
    ) -> Bound:
        """Make a bound from below; ``shown`` is the format of all numbers. NaN fails it.

        With a lower figure on record, ``recorded``, that is the bound and ``allowed`` the target.

        Examples
        --------
        >>> Bound.at_least("cells within a grid step", 0.95, 0.9, shown=".1%").line
        'met: cells within a grid step: 95.0%, allowed at least 90.0%'
        """
        bound = allowed if recorded is None else min(allowed, recorded)
        return cls._of(name, "at least", measured, bound, allowed, sign=1.0, shown=shown)

    @classmethod
    def at_most(
        cls,
        name: str,
        measured: float,
        allowed: float,
        *,
        recorded: float | None = None,
        shown: str = ".4g",
    ) -> Bound:
        """Make a bound from above; ``shown`` is the format of all numbers. NaN fails it.

        With a higher figure on record, ``recorded``, that is the bound and ``allowed`` the target.

        Examples
        --------
        >>> Bound.at_most("mean error", 0.08, 0.07, shown=".1%").line
        'FAILED: mean error: 8.0%, allowed at most 7.0%'
        >>> Bound.at_most("mean error", 0.08, 0.07, recorded=0.085, shown=".1%").line
        'TARGET MISSED: mean error: 8.0%, target at most 7.0%, allowed at most 8.5%'
        """
        bound = allowed if recorded is None else max(allowed, recorded)
        return cls._of(name, "at most", measured, bound, allowed, sign=-1.0, shown=shown)

    @classmethod
    def _of(
        cls,
        name: str,
        sense: str,
        measured: float,
        bound: float,
        target: float,
        *,
        sign: float,
        shown: str,
    ) -> Bound:
        return cls(
            name=name,
            measured=format(measured, shown),
            allowed=f"{sense} {bound:{shown}}",
            met=bool(sign * measured >= sign * bound),
            target=f"{sense} {target:{shown}}" if bound != target else "",
            target_met=bool(sign * measured >= sign * target),
        )

    @property
    def line(self) -> str:
        """The verdict in one line."""
        verdict = "FAILED" if not self.met else "met" if self.target_met else "TARGET MISSED"
        target = f"target {self.target}, " if self.target else ""
        return f"{verdict}: {self.name}: {self.measured}, {target}allowed {self.allowed}"

    @property
    def style(self) -> str:
        """Colour of the verdict in a terminal."""
        return "green" if self.met and self.target_met else "bold red"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reproduction:
    """Published or measured figures and ours: one row of ``frame`` a cell of their table.

    Parameters
    ----------
    frame
        The labels first, then their figure, ours and the difference.
    bounds, unjudged
        Figures that are judged, and figures without a bound, one line each. Not both may be empty.
    notes
        Explanations of the columns: sources of the figures, constants that are fitted.
    shown
        Columns that a terminal is wide enough for; the files have all. None given, all are shown.
    """

    title: str
    frame: pd.DataFrame
    bounds: tuple[Bound, ...]
    figure: Figure
    notes: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        held = len(self.bounds) + len(self.unjudged)
        for field, number in (("frame", len(self.frame)), ("bounds", held)):
            if not number:
                raise ValueError(f"reproduction {self.title}: {field} must not be empty")
        missing = [column for column in self.shown if column not in self.frame.columns]
        if missing:
            raise ValueError(
                f"reproduction {self.title}: shown must be columns of frame, got {missing[0]!r}"
            )

    @property
    def verdicts(self) -> tuple[tuple[str, str], ...]:
        """Each verdict in one line, and how it is set off in a terminal."""
        lines = [(bound.line, bound.style) for bound in self.bounds]
        lines += [(f"not judged: {line}", "yellow") for line in self.unjudged]
        if not self.bounds:
            lines.append(("nothing was judged: no bound applies to these rows", "yellow"))
        return tuple(lines)


def _page(reproduction: Reproduction, repeat: Repetition) -> Report:
    verdicts = [line for line, _ in reproduction.verdicts]
    num_met = sum(bound.met for bound in reproduction.bounds)
    num_missed = sum(not bound.target_met for bound in reproduction.bounds if bound.target)
    missed = f" {num_missed} stricter targets are missed." if num_missed else ""
    return Report(
        title=reproduction.title,
        question="Are the published or measured figures reproduced within the stated bounds?",
        answer=f"{num_met} of {len(reproduction.bounds)} bounds are met.{missed}",
        repeat=repeat,
        first=(reproduction.figure,),
        tables=(
            PageTable(
                title="Verdicts", head=("verdict",), rows=tuple((line,) for line in verdicts)
            ),
            PageTable(
                title="Table",
                head=tuple(map(str, reproduction.frame.columns)),
                rows=tuple(map(tuple, _cells(reproduction.frame))),
                notes=reproduction.notes,
            ),
        ),
    )


def publish(
    reproduction: Reproduction,
    folder: Path,
    repeat: Repetition,
    choice: OutputChoice | None = None,
) -> int:
    """Write the files, print the table and the verdicts, and return the exit code.

    The files are ``table.csv`` (all digits), ``table.md``, ``report.html`` and the figure: all or
    none. Equal reproductions give equal bytes.

    Returns
    -------
    int
        1 if a bound is not met, else 0: also where a stricter target is missed or no bound applies,
        as the lines then say.

    Raises
    ------
    ValueError
        If the folder cannot be made or written.
    """
    choice = choice or OutputChoice()
    files = {
        **choice.row_files({"table": reproduction.frame}),
        "table.md": markdown(reproduction).encode(),
        **choice.report_files(_page(reproduction, repeat)),
    }
    paths = write_files(folder, files)
    DOCUMENT.add(
        title=reproduction.title,
        rows=reproduction.frame,
        bounds=[asdict(bound) for bound in reproduction.bounds],
        unjudged=reproduction.unjudged,
        notes=reproduction.notes,
        files=paths,
    )
    console = plain_console(sys.stdout)
    console.print(reproduction.title, style="bold", soft_wrap=True)
    _print_table(console, reproduction)
    for note in reproduction.notes:
        console.print(note, soft_wrap=True)
    for line, style in reproduction.verdicts:
        console.print(line, style=style, soft_wrap=True)
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)
    return 0 if all(bound.met for bound in reproduction.bounds) else 1


def markdown(reproduction: Reproduction) -> str:
    """Return title, verdicts, table and notes as Markdown."""
    frame = reproduction.frame
    rule = ["---:" if number else "---" for number in _are_numbers(frame)]
    lines = [
        f"# {reproduction.title}",
        "",
        *(f"- {line}" for line, _ in reproduction.verdicts),
        "",
        _markdown_row([str(column) for column in frame.columns]),
        _markdown_row(rule),
        *(_markdown_row(cells) for cells in _cells(frame)),
    ]
    for note in reproduction.notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _print_table(console: Console, reproduction: Reproduction) -> None:
    """Print the table, in parts where the terminal is too narrow."""
    frame = reproduction.frame
    if reproduction.shown:
        frame = frame[list(reproduction.shown)]
    narrow = bool(reproduction.shown)
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0 if narrow else 1), show_edge=not narrow
    )
    for column, number in zip(frame.columns, _are_numbers(frame), strict=True):
        heading = str(column).replace("_", "\n")
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for cells in _cells(frame):
        table.add_row(*cells)
    console.print(table)
    num_left = len(reproduction.frame.columns) - len(frame.columns)
    if num_left:
        console.print(f"{num_left} further columns are in the files.", soft_wrap=True)


def _are_numbers(frame: pd.DataFrame) -> list[bool]:
    """Whether each column holds numbers, which are set flush right."""
    dtypes = frame.dtypes
    return [
        pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        for dtype in dtypes
    ]


def _cells(frame: pd.DataFrame) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]


def _cell(value: Any) -> str:
    """Four digits of a fraction, all of a count or a text; yes or no; none for a missing value."""
    if pd.isna(value):
        return "none"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
