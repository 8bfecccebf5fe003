"""Trials of a sweep as tasks of Ray; needs the extra ``ray``."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import ray

from scenarios.frame.ray_session import RETRIES, ray_session
from scenarios.train.sweep_running import Submit
from scenarios.train.training_points import TrainingPoint, train_point_unseen


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
    """Train where relative paths mean what they mean to the user."""
    with contextlib.chdir(folder):
        return train_point_unseen(point)
