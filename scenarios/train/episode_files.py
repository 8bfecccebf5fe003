"""Files of episodes: times of plans and moves of one world, as arrays, and refused if damaged."""

import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from agents.replanning.tables import EpisodeTables, levels_of
from des import Placement, Plan
from des.base.names import one_line

_MOST_BYTES = 2**30
"""Bytes of the arrays of a file; those of a world of ten sites have some megabytes."""

_DAMAGED = (ValueError, KeyError, IndexError, TypeError, EOFError, OSError, NotImplementedError,
            MemoryError, SyntaxError, tokenize.TokenError, zipfile.BadZipFile,
            zlib.error)  # fmt: skip
"""Errors of NumPy and of archives about bytes that they did not write."""

SHARED_ARRAYS = ("moved_bytes", "cost_bytes", "base_iteration_s")
FIGURES = (
    "epoch_s",
    "iterations_per_epoch",
    "flops_per_iteration",
    "tokens_per_iteration",
    "peak_flops_per_s",
)


def read_tables(path: Path) -> list[EpisodeTables]:
    """Read the episodes of one world.

    Raises
    ------
    ValueError
        If the file is damaged, naming it.
    """
    with opened_episodes(path) as held:
        plans = tuple(
            Plan(placement=Placement.parse(text), schedule=schedule)
            for text, schedule in _array(held, "plans").tolist()
        )
        shared: dict[str, Any] = {name: _numbers(held, name) for name in SHARED_ARRAYS}
        figures = {name: _array(held, name).item() for name in FIGURES}
        for name, figure in figures.items():
            if not isinstance(figure, int | float):
                raise ValueError(f"{name} must be a number, got {figure!r}")
        return [
            EpisodeTables(
                plans=plans,
                iteration_s=iteration_s,
                move_s=move_s,
                level=levels_of(plans),
                **shared,
                **figures,
            )
            for iteration_s, move_s in zip(
                _numbers(held, "iteration_s"), _numbers(held, "move_s"), strict=True
            )
        ]


def _numbers(held: Mapping[str, Any], name: str) -> Any:
    return _array(held, name).astype(np.float64, casting="same_kind")


def _array(held: Mapping[str, Any], name: str) -> Any:
    """An array of a file; NumPy gives bytes for what does not begin as one."""
    array = held[name]
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} must be an array, got {len(array)} bytes")
    return array


@contextmanager
def opened_episodes(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the arrays of a file; errors of what is read inside are those of a damaged file.

    Raises
    ------
    ValueError
        If it is damaged or holds more than any file of ours, naming it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            num_bytes = sum(entry.file_size for entry in archive.infolist())
        if num_bytes > _MOST_BYTES:
            raise ValueError(f"it holds {num_bytes} bytes")
        with np.load(path, allow_pickle=False) as held:
            yield held
    except _DAMAGED as error:
        raise ValueError(
            f"{path}: must be as it was written, got a damaged file ({one_line(str(error))}); "
            "remove it, and it will be made again"
        ) from error
