"""Cases one by one or in processes, each kept as soon as it is done."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pandas as pd

from calibration.reference.pool import map_in_processes
from scenarios.frame.files import read_csv, write_csv
from scenarios.study.compare.cases import ComparedDraw
from scenarios.study.compare.dynamic_part import dynamic_rows
from scenarios.study.compare.static_part import static_rows

CASE_LIMIT_S = 3600.0
"""Time limit of one case; a planner that exceeds it is ended, and the comparison with it."""

Progress = Callable[[int, int], None]
"""Called with the number of cases done, and of all."""

TIMINGS = ("decision_time_s", "candidates_time_s")
"""Columns of timings, which differ from run to run."""


def rows_of_draws(case: ComparedDraw) -> pd.DataFrame:
    """Measure a case, whichever part it belongs to."""
    return static_rows(case) if case.part == "static" else dynamic_rows(case)


def run_cases(
    cases: Sequence[ComparedDraw], folder: Path, *, num_workers: int, progress: Progress
) -> list[pd.DataFrame]:
    """Measure the cases that the folder does not hold yet, and return the rows of all.

    Parameters
    ----------
    folder
        Folder of the rows of each case, written whole or not at all.
    num_workers
        Processes; 1 means this one. Rows do not depend on it, but for the timings.

    Raises
    ------
    ValueError
        If a file in the folder is no table.
    RuntimeError
        If a case fails or takes too long, naming it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [case for case in cases if not _path(folder, case).exists()]
    num_done = len(cases) - len(missing)
    progress(num_done, len(cases))
    if num_workers == 1:
        for case in missing:
            write_csv(_path(folder, case), rows_of_draws(case))
            num_done += 1
            progress(num_done, len(cases))
    else:
        outcomes = map_in_processes(
            rows_of_draws, missing, num_workers=num_workers, timeout_s=CASE_LIMIT_S
        )
        with closing(outcomes):
            for position, outcome in outcomes:
                case = missing[position]
                if isinstance(outcome, Exception):
                    raise RuntimeError(f"case {case.name}: {outcome}") from outcome
                write_csv(_path(folder, case), outcome)
                num_done += 1
                progress(num_done, len(cases))
    return [read_csv(_path(folder, case)) for case in cases]


def _path(folder: Path, case: ComparedDraw) -> Path:
    return folder / f"{case.name}.csv"
