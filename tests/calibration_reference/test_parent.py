"""Processes of every pool end when the process that started them is killed."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT, command_of, descendants, is_running, kill_and_wait, python, wait_until

POOLS = {
    "episodes of Hi-PPO and predictions of a calibration": """
from calibration.reference.pool import worker_processes
with worker_processes(2) as at_work:
    list(at_work(say_and_hang, range(2)))
""",
    "tasks with time limits": """
from calibration.reference.pool import map_in_processes
list(map_in_processes(say_and_hang, range(2), num_workers=2, timeout_s=1e6))
""",
    "tasks whose modules are not imported yet": """
import os
import slow_import
from calibration.reference.pool import map_in_processes
os.environ[slow_import.FOLDER] = str(folder)
list(map_in_processes(slow_import.task, range(2), num_workers=2, timeout_s=1e6, at_once=True))
""",
    "tasks whose modules are not imported yet, programs of theirs ended first": """
import os
import slow_import
from calibration.reference.pool import map_in_processes
os.environ[slow_import.FOLDER] = str(folder)
list(map_in_processes(slow_import.task, range(2), num_workers=2, timeout_s=1e6))
""",
    "a Ray of our own": """
import ray
from scenarios.frame.ray_session import ray_session
ray.cloudpickle.register_pickle_by_value(pool_tasks)
with ray_session("local", num_cpus=2):
    touch = ray.remote(num_cpus=1)(pool_tasks.note_and_hang)
    ray.get([touch.remote(folder, number) for number in range(2)])
""",
}
MAIN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
folder = Path(sys.argv[2])
import pool_tasks
from functools import partial
say_and_hang = partial(pool_tasks.note_and_hang, folder)
"""


def wait_for_both(folder: Path, process: subprocess.Popen[Any]) -> bool:
    """Whether both tasks have begun; not if the process ends before."""
    return wait_until(lambda: all((folder / name).exists() for name in "01"), process)


RAY = "a Ray of our own"


@contextmanager
def both_at_work(pool: str, folder: Path) -> Iterator[subprocess.Popen[Any]]:
    """A process whose pool has begun two tasks that never end."""
    if pool == RAY and find_spec("ray") is None:
        pytest.skip("the extra ray is not installed")
    ready = folder / "ready"
    ready.mkdir()
    with python(
        *("-c", MAIN + POOLS[pool], str(ROOT / "tests"), str(ready)), stderr=subprocess.PIPE
    ) as process:
        both = wait_for_both(ready, process)
        assert both, process.communicate()[1]
        assert len(descendants(process.pid)) >= 2
        yield process


@pytest.mark.parametrize(
    "pool", [pytest.param(one, marks=[pytest.mark.soak] * (one == RAY)) for one in POOLS]
)
def test_processes_of_a_pool_end_with_a_parent_that_is_killed(pool, tmp_path):
    """Two of Ray's own take a minute, in which they try to tell others of the end."""
    with both_at_work(pool, tmp_path) as process:
        kill_and_wait(process)


@pytest.mark.soak
def test_tasks_of_a_ray_end_with_a_parent_that_is_killed(tmp_path):
    with both_at_work(RAY, tmp_path) as process:
        started = descendants(process.pid)
        tasks = {one for one in started if "note_and_hang" in command_of(one)}
        assert len(tasks) == 2

        process.kill()
        process.wait()

        wait_until(lambda: not any(map(is_running, tasks)))
        for one in started:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)


def test_a_program_of_others_ends_with_a_caller_that_is_killed(tmp_path):
    """It is a group of its own, so no signal to ours reaches it."""
    code = f"""
import sys
from pathlib import Path
from calibration.reference.binaries import run_reference_program
program = "import pathlib, threading; pathlib.Path('0').touch(); pathlib.Path('1').touch();"
words = [sys.executable, "-c", program + "threading.Event().wait()"]
run_reference_program(words, Path({str(tmp_path)!r}), timeout_s=1e6)
"""
    with python("-c", code) as process:
        assert wait_for_both(tmp_path, process)
        assert len(descendants(process.pid)) == 1

        kill_and_wait(process)
