"""Table of the forms of traces, and the guess which one a file has."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from des.base.checks import require_known
from des.base.text_files import read_text
from scenarios.job_queue.traces import alibaba_2020, gavel, lingjun, philly
from scenarios.job_queue.traces.own_columns import read_own_columns
from scenarios.job_queue.traces.tables import TABLE_FORMS, cells_of
from scenarios.job_queue.traces.trace_jobs import JobTrace, TraceForm, jobs_of_rows

FORMS: Mapping[str, TraceForm] = MappingProxyType(
    {
        "philly": philly.FORM,
        "alibaba_2020": alibaba_2020.FORM,
        "lingjun": lingjun.FORM,
        "gavel": gavel.FORM,
        **{name: TraceForm(row.read, row.mark, row.likeness) for name, row in TABLE_FORMS.items()},
    }
)
"""All forms by name."""

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
        form, told_by = "columns", f"the given columns {', '.join(columns.values())}"
        rows, notes = read_own_columns(path, columns)
    else:
        form = _form_of(path, form)
        told_by = FORMS[form].mark
        rows, notes = FORMS[form].read(path)
    trace = jobs_of_rows(path, form, rows, keeps_failed=keeps_failed, notes=notes)
    return replace(trace, told_by=told_by)


def _form_of(path: Path, form: str) -> str:
    """Form of a file or folder, which must be like it; that which it is most like for ``auto``."""
    head = "" if path.is_dir() else read_text(path).lstrip().partition("\n")[0]
    likeness = _likeness(path, head)
    best = max(likeness, key=likeness.__getitem__)
    if form == "auto":
        if likeness[best] < _ENOUGH:
            raise ValueError(
                f"{path}: must be a trace of one of the forms {', '.join(FORMS)}; the nearest is "
                f"{best}, of whose columns it has {likeness[best]:.0%}"
                f"{_lacks(head, best)}; --columns submit=NAME,gpus=NAME,duration=NAME maps others"
            )
        form = best
    require_known("unknown form of trace", form, FORMS)
    if likeness[form] < _ENOUGH:
        raise ValueError(
            f"{path}: must be a trace of the form {form}, of whose columns it has "
            f"{likeness[form]:.0%}{_lacks(head, form)}; the nearest form is {best} "
            f"({likeness[best]:.0%})"
        )
    return form


def _lacks(head: str, form: str) -> str:
    """Columns of a form with a header that a first line lacks; nothing of a folder."""
    if not head or form not in TABLE_FORMS or not TABLE_FORMS[form].has_header:
        return ""
    missing = [name for name in TABLE_FORMS[form].columns if name not in cells_of(head)]
    return f", without {', '.join(missing)}"


def _likeness(path: Path, head: str) -> dict[str, float]:
    """Share of the marks of each form that a file, or a folder, has."""
    if path.is_dir():
        return {
            name: sum((path / table).is_file() for table in form.tables) / max(1, len(form.tables))
            for name, form in FORMS.items()
        }
    if not head:
        raise ValueError(f"{path}: must be a trace of one of {', '.join(FORMS)}; the file is empty")
    names = dict.fromkeys((*TABLE_FORMS, *FORMS))  # the first of equally near ones is a table
    return {name: FORMS[name].likeness(path, head) for name in names}
