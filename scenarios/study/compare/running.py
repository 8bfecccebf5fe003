"""Cases one by one or in processes, each kept as soon as it is done."""

from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

import pandas as pd

from calibration.reference.pool import map_in_processes
from des.base.speaking import SPEAKER
from scenarios.frame.files import read_csv, write_csv
from scenarios.study.compare.cases import ComparedDraw
from scenarios.study.compare.dynamic_part import dynamic_rows
from scenarios.study.compare.static_part import static_rows

CASE_LIMIT_S = 3600.0
"""Time limit of one case; a planner that exceeds it is ended, and the comparison with it."""

TIMINGS = ("decision_time_s", "candidates_time_s")
"""Columns of timings, which differ from run to run."""


def rows_of_draws(case: ComparedDraw) -> pd.DataFrame:
    """Measure a case, whichever part it belongs to."""
    return static_rows(case) if case.part == "static" else dynamic_rows(case)


def run_cases(
    cases: Sequence[ComparedDraw], folder: Path, *, num_workers: int
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
    outcomes: Generator[tuple[int, pd.DataFrame | Exception], None, None]
    if num_workers == 1:
        outcomes = (one for one in enumerate(map(rows_of_draws, missing)))
    else:
        outcomes = map_in_processes(
            rows_of_draws, missing, num_workers=num_workers, timeout_s=CASE_LIMIT_S
        )
    num_before = len(cases) - len(missing)
    SPEAKER.reached(f"{num_before} of {len(cases)} cases")
    with closing(outcomes):
        for num_done, (position, outcome) in enumerate(outcomes, start=num_before + 1):
            case = missing[position]
            if isinstance(outcome, Exception):
                raise RuntimeError(f"case {case.name}: {outcome}") from outcome
            write_csv(_path(folder, case), outcome)
            SPEAKER.reached(f"{num_done} of {len(cases)} cases")
    return [read_csv(_path(folder, case)) for case in cases]


def _path(folder: Path, case: ComparedDraw) -> Path:
    return folder / f"{case.name}.csv"
