"""Table of the forms of traces, and the guess which one a file has."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from des.base.checks import nearest
from des.base.text_files import read_json, read_text
from scenarios.job_queue.traces import alibaba_2020, gavel, lingjun, philly
from scenarios.job_queue.traces.own_columns import read_own_columns
from scenarios.job_queue.traces.tables import TABLE_FORMS
from scenarios.job_queue.traces.trace_jobs import JobTrace, number_of

FORMS = ("philly", "alibaba_2020", "lingjun", "gavel", *TABLE_FORMS)
"""Names of all forms."""

_FOLDERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"alibaba_2020": ("job_table.csv", "task_table.csv"), "lingjun": lingjun.TABLE_NAMES}
)
"""Tables of the forms that are folders."""

_ENOUGH = 0.99
"""Share of a form's columns that a file must have to be taken for one."""


def read_job_trace(
    path: Path,
    form: str,
    *,
    columns: Mapping[str, str] = MappingProxyType({}),
    keeps_failed: bool = True,
) -> JobTrace:
    """Read a trace.

    Parameters
    ----------
    form
        Name of its form; ``auto`` takes the one whose columns the file has.
    columns
        Columns of a CSV file of another form, by what they hold; see `own_columns`.
    keeps_failed
        Whether failed and killed jobs are jobs with the time that they ran for.

    Raises
    ------
    ValueError
        If the file is none of its form, naming the nearest one, or holds no job.
    """
    if columns:
        trace = read_own_columns(path, columns, keeps_failed=keeps_failed)
        return replace(trace, told_by=f"the given columns {', '.join(columns.values())}")
    likeness = _likeness(path)
    best = max(likeness, key=likeness.__getitem__)
    if form == "auto":
        if likeness[best] < _ENOUGH:
            raise ValueError(
                f"{path}: must be a trace of one of the forms {', '.join(FORMS)}; the nearest is "
                f"{best}, of whose columns it has {likeness[best]:.0%}"
                f"{_lacks(path, best)}; --columns submit=NAME,gpus=NAME,duration=NAME maps others"
            )
        form = best
    if form not in FORMS:
        raise ValueError(f"unknown form of trace {form!r}; {nearest(form, FORMS)}")
    if likeness[form] < _ENOUGH:
        raise ValueError(
            f"{path}: must be a trace of the form {form}, of whose columns it has "
            f"{likeness[form]:.0%}{_lacks(path, form)}; the nearest form is {best} "
            f"({likeness[best]:.0%})"
        )
    if form in TABLE_FORMS:
        trace = TABLE_FORMS[form].read(path, form, keeps_failed=keeps_failed)
    else:
        trace = _OTHERS[form](path, keeps_failed=keeps_failed)
    return replace(trace, told_by=_MARKS[form])


def _lacks(path: Path, form: str) -> str:
    """Columns of a form with a header that a file lacks."""
    if path.is_dir() or form not in TABLE_FORMS or not TABLE_FORMS[form].has_header:
        return ""
    missing = [name for name in TABLE_FORMS[form].columns if name not in _header(path)]
    return f", without {', '.join(missing)}"


def _header(path: Path) -> list[str]:
    return [cell.strip() for cell in read_text(path).lstrip().partition("\n")[0].split(",")]


def _likeness(path: Path) -> dict[str, float]:
    """Share of the columns of each form that a file, or a folder, has."""
    if path.is_dir():
        has = {
            form: sum((path / name).is_file() for name in tables) / len(tables)
            for form, tables in _FOLDERS.items()
        }
        return dict.fromkeys(FORMS, 0.0) | has
    head, _, _ = read_text(path).lstrip().partition("\n")
    if not head:
        raise ValueError(f"{path}: must be a trace of one of {', '.join(FORMS)}; the file is empty")
    cells = _header(path)
    found = {
        name: sum(column in cells for column in form.columns) / len(form.columns)
        for name, form in TABLE_FORMS.items()
    }
    found["philly"] = _philly_likeness(path) if head[:1] == "[" else 0.0
    num_tabs = head.count("\t")
    found["gavel"] = float(num_tabs + 1 in (len(gavel.COLUMNS), len(gavel.COLUMNS) + 1))
    found |= dict.fromkeys(_FOLDERS, 0.0)
    found["blox"] = _blox_likeness(cells)
    return found


def _philly_likeness(path: Path) -> float:
    log = read_json(path)
    first = log[0] if isinstance(log, list) and log else {}
    return sum(field in first for field in philly.FIELDS) / len(philly.FIELDS)


def _blox_likeness(cells: list[str]) -> float:
    """Five cells without a header, all but the second one numbers."""
    if len(cells) != len(TABLE_FORMS["blox"].columns):
        return 0.0
    numbers = [number_of(cell) is not None for cell in (cells[0], *cells[2:])]
    return sum(numbers) / len(numbers)


class _ReadTrace(Protocol):
    def __call__(self, path: Path, /, *, keeps_failed: bool) -> JobTrace: ...


_OTHERS: Mapping[str, _ReadTrace] = MappingProxyType(
    {
        "philly": philly.read_philly,
        "alibaba_2020": alibaba_2020.read_alibaba_2020,
        "gavel": gavel.read_gavel,
        "lingjun": lingjun.read_lingjun,
    }
)

_MARKS: Mapping[str, str] = MappingProxyType(
    {
        "philly": f"a list of JSON objects with {', '.join(philly.FIELDS)}",
        "gavel": f"a line of {len(gavel.COLUMNS)} cells parted by tabs, or one more",
        **{form: f"the tables {', '.join(names)}" for form, names in _FOLDERS.items()},
        **{
            name: f"the columns {', '.join(form.columns)}"
            for name, form in TABLE_FORMS.items()
            if form.has_header
        },
        "blox": "five cells without a header, all but the second numbers",
    }
)
"""Marks by which a form is recognised."""
