"""Runs on a world: in a folder that is numbered where the user names none, begun or resumed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from des.base.command import UsageError
from des.base.flags import from_dict
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy_imports
from des.worlds.reading import topology_path
from scenarios.frame.run_folder import RunFolder
from scenarios.train.training_config import PROG, WHERE_RUN, TrainingFlags

with lazy_imports(__name__):
    from des.base import console as base_console

RUNS = Path("runs")
_Flags = TypeVar("_Flags", bound=TrainingFlags)


def run_in_folder(
    config: _Flags,
    given: frozenset[str],
    recorded: Callable[[_Flags], Mapping[str, object]],
    ready: Callable[[_Flags], Callable[[RunFolder], bool]],
) -> int:
    """Train in a new folder, or continue the run of an old one, and return the exit code.

    Parameters
    ----------
    given
        Names of the flags that the user gave.
    recorded
        Returns what the folder keeps of a configuration.
    ready
        Reads and checks all that a configuration names, before anything is written. What it
        returns trains in the folder, and says whether the training is complete.
    """
    if config.resume:
        with RunFolder.opened(config.out or newest_run(PROG)) as folder:
            return _code(ready(_begun(config, given, folder, recorded)), folder)
    train = ready(config)
    with RunFolder.created(config.out or _number(max(_numbers(), default=0) + 1)) as folder:
        folder.write_config(recorded(config), _inputs(config))
        return _code(train, folder)


def _code(train: Callable[[RunFolder], bool], folder: RunFolder) -> int:
    try:
        if train(folder):
            return 0
    except KeyboardInterrupt:
        pass  # before, between or after the updates: the last checkpoint is whole
    line = f"Interrupted. Continue with: {PROG} --resume --out {shlex.quote(str(folder.path))}"
    base_console.FittedConsole().print(line, soft_wrap=True, markup=False)
    return INTERRUPTED


def _begun(
    config: _Flags,
    given: frozenset[str],
    folder: RunFolder,
    recorded: Callable[[_Flags], Mapping[str, object]],
) -> _Flags:
    """Configuration that the run was begun with, with inputs of its folder; given flags agree."""
    path, record, current = folder.path, folder.read_config(), recorded(config)
    fixed = {name: current[name] for name in given - WHERE_RUN - {"kpi"}}
    folder.require_begun_with(record, fixed, PROG)
    old = from_dict(type(config), record, source=str(folder.config_json))
    now: dict[str, Any] = {name: getattr(config, name) for name in WHERE_RUN | (given & {"kpi"})}
    corrections = None if old.corrections is None else path / old.corrections
    now |= {"network": str(path / old.network), "corrections": corrections}
    loads = getattr(old, "loads", None)
    if loads is not None and (path / loads).is_file():
        now["loads"] = str(path / loads)
    return replace(old, **now | {"out": path, "resume": True})


def _inputs(config: TrainingFlags) -> dict[str, Path]:
    """Input files of which the run folder keeps copies: it can be resumed and repeated alone."""
    inputs = {"network": topology_path(config.network)}
    loads = getattr(config, "loads", None)
    if loads is not None and Path(loads).is_file():
        inputs["loads"] = Path(loads)
    return inputs if config.corrections is None else inputs | {"corrections": config.corrections}


def newest_run(prog: str) -> Path:
    """Return the path of the newest run folder.

    Raises
    ------
    UsageError
        If there is none.
    """
    numbers = _numbers()
    if not numbers:
        raise UsageError(f"{prog}: --resume must find a run in {RUNS}, or be told by --out")
    return _number(max(numbers))


def _number(number: int) -> Path:
    return RUNS / f"east_west-{number:03}"


def _numbers() -> list[int]:
    """Numbers of the runs that there are."""
    matches = (re.fullmatch(r"east_west-(\d{3,9})", path.name) for path in RUNS.glob("*"))
    return [int(match[1]) for match in matches if match is not None]
