"""Output files of commands: rows first, then pages and pictures, as the flags choose.

All of a kind are written or none. A report is a value: question, answer, tables, figures, and the
command that repeats the run.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from des.base.atomic_write import write_together
from des.base.command import UsageError
from des.base.command_line import spelt
from des.base.csv_text import csv_text, frame_csv
from des.base.document import plain_json
from des.base.extras import require_extra
from des.base.fields import plain_fields
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports
from scenarios.frame.report import Repetition, Report
from scenarios.frame.run_folder import run_record

with lazy_imports(__name__):
    import pandas as pd
    from _typeshed import DataclassInstance

    from des.figures import paper
    from des.figures.figure import Figure
    from scenarios.frame import report_page

_WHERE = frozenset({"out", "resume", "report", "workers", "figures", "parquet"})
"""Flags that change where results go, not what they are."""


def _is_said(one: Field[object]) -> bool:
    """Whether a field says what the results are, not where they go or how they are shown."""
    return one.name not in _WHERE and bool(one.metadata.get("is_recorded", True))


def repeated_settings(config: DataclassInstance) -> dict[str, object]:
    """Return the settings that say what the results are, as plain values."""
    return {
        one.name: plain_fields(getattr(config, one.name)) for one in fields(config) if _is_said(one)
    }


def repetition_of(prog: str, config: DataclassInstance) -> Repetition:
    """Return how a command with these settings is repeated."""
    return Repetition(command=repeat_command(prog, config), configuration=repeated_settings(config))


def repeat_command(prog: str, config: DataclassInstance) -> str:
    """Return the command with the flags that are not at their defaults, in their order."""
    parts = [prog]
    for one in fields(config):
        value = plain_fields(getattr(config, one.name))
        is_default = one.default is not MISSING and value == plain_fields(one.default)
        if _is_said(one) and not is_default:
            name = spelt(one.name)
            if isinstance(value, bool):
                parts.append(name if value else f"--no-{name.removeprefix('--')}")
            elif value is not None:
                text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
                if not one.metadata.get("is_positional", False):
                    parts += [name, shlex.quote(text)]
                else:
                    words = value if isinstance(value, list) else [text]
                    parts += [shlex.quote(str(word)) for word in words]
    return " ".join(parts)


REPORT = "report.html"
Columns = Mapping[str, Sequence[object]]
"""Table as its columns, by name."""


def figures_option(default: tuple[str, ...] = ("png",)) -> tuple[str, ...]:
    """Make the flag ``--figures`` of a command; none by default where drawing takes the longest."""
    said = "formats of figures in files, some of png, pdf, svg; none: no files"
    return option(default, said, default_text=" ".join(default) or "none")


def parquet_option() -> bool:
    """Make the flag ``--parquet`` of a command."""
    return option(False, "write rows as Parquet files too")


def _last(flag: Any) -> Any:
    """Mark a flag as a last one of every command that inherits it."""
    return field(default=flag.default, metadata={**flag.metadata, "is_last": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChoice:
    """Formats of output files: of figures (``none``: no files), and whether rows are Parquet too.

    Raises
    ------
    ValueError
        If a format is unknown, or Parquet files need a package that is not installed.
    """

    figures: tuple[str, ...] = ("png",)
    parquet: bool = False

    def __post_init__(self) -> None:
        if self.figures == ("none",):
            object.__setattr__(self, "figures", ())
        elif self.figures not in ((), ("png",)):
            try:
                chosen = paper.choose_formats("--figures", self.figures)
            except ValueError as error:
                raise UsageError(str(error)) from error
            object.__setattr__(self, "figures", chosen)
        if self.parquet:
            require_extra("--parquet", "pyarrow")

    def figure_files(self, figures: Iterable[Figure]) -> dict[str, bytes]:
        """Return the figures' files by name."""
        return {
            f"{figure.name}.{one}": paper.image_bytes(figure, one)
            for figure in figures
            for one in self.figures
        }

    def row_files(self, tables: Mapping[str, pd.DataFrame | Columns]) -> dict[str, bytes]:
        """Return the files of tables, by stem, as CSV and, if chosen, as Parquet."""
        files = {}
        for stem, table in tables.items():
            if isinstance(table, Mapping):
                rows = zip(*table.values(), strict=True)
                files[f"{stem}.csv"] = csv_text([table, *rows]).encode()
            else:
                files[f"{stem}.csv"] = frame_csv(table).encode()
            if self.parquet:
                content = io.BytesIO()
                pd.DataFrame(table).to_parquet(content, index=False)
                files[f"{stem}.parquet"] = content.getvalue()
        return files

    def report_files(self, report: Report) -> dict[str, bytes]:
        """Return the page of a report and the files of its figures."""
        page = {REPORT: report_page.render_report(report).encode()}
        return page | self.figure_files(report.all_figures())


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFlags(JsonFlag):
    """Flags of a command that writes rows, figures and a report: the last ones of its help."""

    figures: tuple[str, ...] = _last(figures_option())
    parquet: bool = _last(parquet_option())

    def choice(self) -> OutputChoice:
        """Return the formats of the output files; `UsageError` where one is unknown."""
        return OutputChoice(figures=self.figures, parquet=self.parquet)


def write_outputs(
    folder: Path,
    choice: OutputChoice,
    report: Report,
    frames: Mapping[str, pd.DataFrame] | None = None,
) -> None:
    """Write rows first, then the report and its figures: if these fail, the rows are kept.

    Raises
    ------
    ValueError
        If a file cannot be written, naming it.
    """
    for files in (choice.row_files(frames or {}), choice.report_files(report)):
        try:
            write_together({folder / name: content for name, content in files.items()})
        except OSError as error:
            raise ValueError(f"{error.filename}: cannot be written: {error.strerror}") from error


RESULT = "result.json"
"""File with the settings and the figures of a command that may write into one folder again."""


def result_file(settings: Mapping[str, object], **content: object) -> dict[str, bytes]:
    """Return result.json: settings and versions, which ``--config`` takes, and the results."""
    said = run_record(settings) | {name: plain_json(value) for name, value in content.items()}
    return {RESULT: (json.dumps(said, indent=2, allow_nan=False) + "\n").encode()}


_SHOWN = (".html", ".png", ".pdf", ".svg")
"""Endings of pages and pictures."""


def require_no_run(folder: Path) -> None:
    """Refuse the folder of a run: it has a ``config.json`` and files that are not to be replaced.

    Raises
    ------
    ValueError
        If the folder has one.
    """
    if (folder / "config.json").exists():
        raise ValueError(
            f"--out {folder}: must not be a run folder, got one that has a config.json; "
            "choose another --out"
        )


def write_files(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Write all rows or none, then all pages and pictures or none; return where the files are.

    If the pages cannot be written, the rows are kept.

    Raises
    ------
    ValueError
        If the folder cannot be made or written, or is that of a run.
    """
    require_no_run(folder)
    places = {folder / name: content for name, content in files.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for is_shown in (False, True):
            kind = {at: one for at, one in places.items() if (at.suffix in _SHOWN) is is_shown}
            write_together(kind)
    except OSError as error:
        raise ValueError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return list(places)
