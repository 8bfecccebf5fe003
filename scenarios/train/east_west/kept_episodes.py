"""Judged episodes in a run folder, each written at its end: a resumed run continues there."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import current_thread, main_thread

import pandas as pd

from agents.hi_ppo.policies import digest_of
from des.base.parallel_map import ParallelMap
from des.base.speaking import SPEAKER
from scenarios.frame.files import read_csv, write_csv
from scenarios.frame.run_folder import RunFolder
from scenarios.train.east_west.episodes import Case, Contender

EPISODES = "episodes"
"""Within the run folder; a folder for each set of weights and factors, with a file an episode."""

Rows = list[dict[str, object]]


def judged_once(
    judge: Callable[[Case], Rows],
    contenders: Sequence[Contender],
    cases: Sequence[Case],
    folder: RunFolder,
    at_work: ParallelMap,
) -> list[pd.DataFrame]:
    """Return the rows of each episode; those that the folder holds are not judged again.

    Parameters
    ----------
    judge
        Rows of an episode under the contenders; the same for the same weights and factors.
    """
    kept = folder.path / EPISODES / _digest(contenders, cases)
    kept.mkdir(parents=True, exist_ok=True)
    paths = [_path(kept, case) for case in cases]
    missing = [row for row, path in enumerate(paths) if not path.exists()]
    found = at_work(judge, [cases[row] for row in missing])
    for number, (row, rows) in enumerate(zip(missing, found, strict=True), start=1):
        write_csv(paths[row], pd.DataFrame(rows))
        if current_thread() is main_thread():
            SPEAKER.reached(f"{len(cases) - len(missing) + number} of {len(cases)} episodes")
    return [read_csv(path) for path in paths]


def _path(kept: Path, case: Case) -> Path:
    words = "".join(letter if letter.isalnum() else "_" for letter in case.block)
    return kept / f"{words}-{case.draw_seed}.csv"


def _digest(contenders: Sequence[Contender], cases: Sequence[Case]) -> str:
    """Digest of weights and factors, short enough for a name."""
    weights = [f"{one.name} {one.control} {digest_of(one.file)}" for one in contenders]
    factors = sorted({repr((case.corrections, case.preference)) for case in cases})
    return hashlib.sha256("\n".join([*weights, *factors]).encode()).hexdigest()[:16]
