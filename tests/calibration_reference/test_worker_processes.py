"""Processes that map work: in order, to the first error, and again afterwards."""

import os
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path

import pytest
from pool_tasks import do_as_told, note_and_do, note_and_do_with_another
from processes import FAILSAFE_S

from calibration.reference import pool
from calibration.reference.pool import worker_processes
from des.base.parallel_map import ParallelMap

SEMAPHORES = Path("/dev/shm")


@pytest.fixture(scope="module")
def two() -> Iterator[ParallelMap]:
    """Two processes for all tests."""
    with worker_processes(2) as at_work:
        yield at_work


def test_results_come_in_order_from_processes_that_stay(two, tmp_path):
    words = ["a", "b", "c", "d", "e"]
    for _ in range(2):
        found = list(two(note_and_do, [(tmp_path, word) for word in words]))
        assert found == ["A", "B", "C", "D", "E"]

    numbers = {int(path.name) for path in tmp_path.iterdir()}
    assert 1 <= len(numbers) <= 2
    assert os.getpid() not in numbers


def test_the_first_error_is_raised_and_work_goes_on(two):
    with pytest.raises(ValueError, match="told to"):
        list(two(do_as_told, ["a", "raise", "raise strangely"]))

    assert list(two(do_as_told, ["a"])) == ["A"]


def test_a_process_that_dies_is_an_error_and_another_takes_its_place(two):
    with pytest.raises(ChildProcessError, match="its process died with exit code -9"):
        list(two(do_as_told, ["die"]))

    assert list(two(do_as_told, ["a", "b"])) == ["A", "B"]


def test_work_that_is_given_up_ends_with_its_processes():
    before = set(active_children())
    with worker_processes(2) as at_work:
        results = at_work(do_as_told, ["a", "hang"])
        assert next(results) == "A"
        results.close()
        assert list(at_work(do_as_told, ["b"])) == ["B"]

    assert set(active_children()) <= before


def test_work_in_a_long_compiled_call_is_given_up_without_waiting(monkeypatch, tmp_path):
    monkeypatch.setattr(pool, "GRACE_S", FAILSAFE_S)
    with worker_processes(2) as at_work:
        results = at_work(note_and_do_with_another, [(tmp_path, "a"), (tmp_path, "hang deaf")])
        assert next(results) == "A"  # which waits for the other process
        assert len(list(tmp_path.iterdir())) == 2
        results.close()
        assert list(at_work(do_as_told, ["b"])) == ["B"]


def test_one_worker_is_this_process(tmp_path):
    with worker_processes(1) as at_work:
        assert list(at_work(note_and_do, [(tmp_path, "a")])) == ["A"]

    assert [path.name for path in tmp_path.iterdir()] == [str(os.getpid())]


def test_no_work_is_no_process():
    before = active_children()
    with worker_processes(4) as at_work:
        assert list(at_work(do_as_told, [])) == []
        assert len(active_children()) == len(before)


@pytest.mark.skipif(not SEMAPHORES.is_dir(), reason="the system shows no semaphores")
def test_there_are_no_semaphores_that_a_kill_could_leave(two):
    """They are held by the process that made them, whose files show which."""
    assert list(two(do_as_told, ["a", "b"])) == ["A", "B"]

    ours = [one.pid for one in active_children()]
    maps = "".join(Path(f"/proc/{number}/maps").read_text() for number in ours)
    assert "/dev/shm/sem." not in maps
