"""Weights of a run: those that it begins from, its candidates, and those that it keeps."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar, cast

import numpy as np
import pandas as pd

from agents.hi_ppo.controls import untrained_policies
from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.hi_ppo.placement.placement_checkpoint import load_placement
from agents.hi_ppo.policies import Policies, TrainedRange, shipped
from des.base.parallel_map import ParallelMap
from scenarios.frame.files import write_csv
from scenarios.frame.run_folder import RunFolder
from scenarios.frame.statistics import paired_difference
from scenarios.train.east_west.config import HiPpoConfig
from scenarios.train.east_west.episodes import Case, Contender, judge_once, total_rows
from scenarios.train.east_west.training import CANDIDATES, snapshots
from scenarios.train.east_west.worlds import WorldsAround
from scenarios.train.east_west.worth import signed_percent
from scenarios.train.hi_ppo_files import POLICIES_PT

_T = TypeVar("_T")
_U = TypeVar("_U")


def choose_weights(times_s: np.ndarray, *, keeps_first: bool) -> int:
    """Return the row of the weights to keep.

    Parameters
    ----------
    times_s
        Times of the same episodes under each of several weights, (C, D). [s]
    keeps_first
        Take others than the first ones only if the whole 95 % interval of their paired difference
        is below 0; else the least mean is taken, the first of equals.

    Raises
    ------
    ValueError
        If there are no weights or no episodes, or a time is not positive and finite.

    Examples
    --------
    >>> times_s = np.array([[10.0, 20.0, 30.0], [9.0, 18.0, 27.0], [7.0, 26.0, 18.0]])
    >>> choose_weights(times_s, keeps_first=True), choose_weights(times_s, keeps_first=False)
    (1, 2)
    """
    if times_s.ndim != 2 or not times_s.size or not (times_s > 0).all():
        raise ValueError(f"weights: times_s must be positive and shaped (C, D), got {times_s!r}")
    differences = [paired_difference(row, times_s[0]) for row in times_s]
    allowed: Sequence[int] = range(len(times_s))
    if keeps_first:
        allowed = [0, *(row for row in allowed[1:] if differences[row].high < 0.0)]
    return min(allowed, key=lambda row: differences[row].mean)


START = "start"
"""Name of the weights that a run begins from."""

_NUM_RANGED = 64  # worlds


@dataclass(frozen=True, kw_only=True)
class SelectedWeights:
    """The weights that a run keeps, and sentences on how they were chosen."""

    file: Path
    told: tuple[str, ...]


def new_policies(config: HiPpoConfig, around: WorldsAround) -> Policies:
    """Draw policies that have learnt nothing, for the worlds of a training."""
    return untrained_policies(_range_of(config, around), config.seed)


def first_policies(config: HiPpoConfig, around: WorldsAround) -> Policies | None:
    """Return the shipped policies if the run begins from them; None: from new weights.

    Raises
    ------
    ValueError
        If they cannot be read.
    """
    if not config.is_from_shipped:
        return None
    policies = Policies.load(shipped())
    return replace(policies, trained_range=policies.trained_range.joined(_range_of(config, around)))


def _range_of(config: HiPpoConfig, around: WorldsAround) -> TrainedRange:
    worlds = [around(index, config.seed) for index in range(_NUM_RANGED)]
    return TrainedRange.of([(world.topology, world.workload) for world in worlds])


def keep_best(
    start: Policies,
    folder: RunFolder,
    cases: Sequence[Case],
    at_work: ParallelMap,
    *,
    is_trained: bool,
) -> SelectedWeights:
    """Choose by validation episodes, first the placement policy, then the move policy.

    Parameters
    ----------
    start
        Policies that the run begins from.
    is_trained
        Whether they are trained ones: they then stay unless others are shown to be better.
    """
    choice = _Choice(folder=folder, cases=cases, at_work=at_work, keeps_first=is_trained)
    placed, rows, told = choice.placement(start)
    kept, more_rows, more_told = choice.best(
        "moves",
        placed,
        {
            path.stem: replace(placed.policies, moves=MovePolicy.load(path))
            for path in snapshots(folder, "moves")
        },
    )
    write_csv(folder.path / "validation.csv", pd.DataFrame([*rows, *more_rows]))
    file = folder.path / POLICIES_PT
    kept.policies.save(file)
    return SelectedWeights(file=file, told=(told, more_told))


@contextmanager
def judge_meanwhile(
    start: Policies, folder: RunFolder, cases: Sequence[Case], at_work: ParallelMap
) -> Iterator[Callable[[], object]]:
    """Judge the placement policies for `keep_best` in another thread, which waits for processes.

    The folder keeps what is judged until the context ends; where that is not all, or under other
    factors, `keep_best` does the rest.

    Yields
    ------
    Callable
        Waits until all is judged.
    """
    stop = Event()

    def until_stopped(function: Callable[[_T], _U], items: Iterable[_T], /) -> Iterator[_U]:
        with closing(cast(Generator[_U], at_work(function, items))) as found:
            yield from takewhile(lambda _: not stop.is_set(), found)

    choice = _Choice(folder=folder, cases=cases, at_work=until_stopped, keeps_first=True)
    thread = Thread(target=_judge, args=(choice, start), daemon=True)
    thread.start()
    try:
        yield thread.join
    finally:
        stop.set()
        thread.join()


def _judge(choice: "_Choice", start: Policies) -> None:
    """Judge what can be judged by now; what fails here is tried, and told, by `keep_best`."""
    with suppress(ChildProcessError, OSError, ValueError):
        choice.placement(start)


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """Policies, and the times of the episodes under them. [s]"""

    policies: Policies
    times_s: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """Choice among candidates by the same episodes."""

    folder: RunFolder
    cases: Sequence[Case]
    at_work: ParallelMap
    keeps_first: bool

    def times_s(self, name: str, policies: Policies) -> tuple[float, ...]:
        """Times of all episodes under some policies. [s]"""
        file = self.folder.path / CANDIDATES / f"with-{name}.safetensors"
        policies.save(file)
        contenders = (Contender(name=name, file=file),)
        judge = partial(total_rows, contenders)
        found = judge_once(judge, contenders, self.cases, self.folder, self.at_work)
        return tuple(float(rows["cost"].iloc[0]) for rows in found)

    def placement(self, start: Policies) -> tuple[_Judged, list[dict[str, object]], str]:
        """Choose the placement policy, see `best`."""
        first = _Judged(policies=start, times_s=self.times_s(START, start))
        trained = {
            path.stem: replace(start, placement=load_placement(path))
            for path in snapshots(self.folder, "placement")
        }
        return self.best("placement", first, trained)

    def best(
        self, stage: str, present: _Judged, candidates: Mapping[str, Policies]
    ) -> tuple[_Judged, list[dict[str, object]], str]:
        """Return the policies to keep, a row for each candidate and episode, and a sentence."""
        judged = {
            f"before {stage}": present,
            **{
                name: _Judged(policies=policies, times_s=self.times_s(name, policies))
                for name, policies in candidates.items()
            },
        }
        times_s = np.array([one.times_s for one in judged.values()])
        rows: list[dict[str, object]] = [
            {
                "stage": stage,
                "weights": name,
                "block": case.block,
                "draw": case.draw,
                "time_s": time_s,
            }
            for name, one in judged.items()
            for case, time_s in zip(self.cases, one.times_s, strict=True)
        ]
        best = list(judged)[choose_weights(times_s, keeps_first=self.keeps_first)]
        changes = ", ".join(
            f"{name} {signed_percent(paired_difference(one.times_s, present.times_s))}"
            for name, one in judged.items()
            if one is not present
        )
        is_trained = judged[best] is not present
        told = (
            f"Weights of {stage}: those {'trained here' if is_trained else 'of before'}; trained "
            f"against before on {len(self.cases)} validation episodes: {changes}."
        )
        return judged[best], rows, told
