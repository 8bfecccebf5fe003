"""Places to map over: this process, worker processes, or tasks of Ray."""

from collections.abc import Iterator
from contextlib import contextmanager

from calibration.reference.pool import worker_processes
from des.base.parallel_map import ParallelMap
from scenarios.frame.ray_extra import ray_module


@contextmanager
def workplace(workers: int, ray: str | None = None) -> Iterator[ParallelMap]:
    """Map over this process or several worker processes; results come in order.

    With ``ray``, see `scenarios.frame.ray_session.ray_session`, over tasks of a Ray instead, of
    ``workers`` CPUs if it is started here.
    """
    if ray is not None:
        place = ray_module("scenarios.train.sweep_ray").ray_workplace
        with place(ray, num_cpus=workers) as at_work:
            yield at_work
        return
    with worker_processes(workers) as at_work:
        yield at_work
