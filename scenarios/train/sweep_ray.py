"""Trials of a sweep, and any map over tasks, by Ray; needs the extra ``ray``."""

import contextlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import ray

from des.base.parallel_map import ParallelMap
from scenarios.frame.ray_session import RETRIES, ray_session
from scenarios.train.sweep_grid import TrainingPoint, train_point_unseen
from scenarios.train.sweep_running import Submit

_T = TypeVar("_T")
_U = TypeVar("_U")


@contextlib.contextmanager
def ray_workplace(address: str, *, num_cpus: int) -> Iterator[ParallelMap]:
    """Map over tasks of one CPU each on a Ray, see `ray_session`.

    Files that tasks write must be on a disk that all machines share. Errors of a task are raised
    here as they were there, and not retried. Items and results go as bytes, since arrays that Ray
    hands over may not be written to, for which kernels would be compiled once more.
    """
    with ray_session(address, num_cpus=num_cpus):
        apply: Any = ray.remote(num_cpus=1, max_retries=RETRIES)(_apply_in)
        folder = Path.cwd()

        def at_work(function: Callable[[_T], _U], items: Iterable[_T], /) -> Iterator[_U]:
            shared = ray.put(function)
            tasks = [apply.remote(shared, pickle.dumps(item), folder) for item in items]
            return (_result_of(task) for task in tasks)

        yield at_work


def _apply_in(function: Callable[[Any], object], item: bytes, folder: Path) -> bytes:
    """Work in the user's working directory."""
    with contextlib.chdir(folder):
        return pickle.dumps(function(pickle.loads(item)))


def _result_of(task: "ray.ObjectRef[bytes]") -> Any:
    try:
        return pickle.loads(ray.get(task))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error


@contextlib.contextmanager
def ray_submitter(address: str, *, num_cpus: int) -> Iterator[Submit]:
    """Give a function that trains a point on one CPU of a Ray, see `ray_session`.

    A training whose machine dies continues from its last checkpoint. Run folders and input files
    must be on a disk that all machines share.
    """
    with ray_session(address, num_cpus=num_cpus):
        train = ray.remote(num_cpus=1, max_retries=RETRIES)(_train_in)
        folder = Path.cwd()

        def submit(point: TrainingPoint) -> "Future[str | None]":
            return train.remote(point, folder).future()

        yield submit


def _train_in(point: TrainingPoint, folder: Path) -> str | None:
    """Train in the user's working directory."""
    with contextlib.chdir(folder):
        return train_point_unseen(point)
