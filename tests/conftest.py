"""Settings of all tests."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from examples import SAMPLE, SOAK
from golden_astra import CASES, CORNERS, unpack
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from numba.core import event

from des.base.jit import COMPILING_LINES

# How long an example takes says nothing about whether it holds, and the machine may be busy.
_EVERYWHERE = settings(deadline=None, database=None)

# Equal sources draw equal examples, so that two runs give one answer.
settings.register_profile("test", _EVERYWHERE, max_examples=SAMPLE, derandomize=True)
settings.register_profile("soak", _EVERYWHERE, max_examples=SOAK, derandomize=False)
settings.load_profile("test")

# Hypothesis mixes constants of all loaded modules of the project into its draws. With equal seeds
# a test run by itself would draw other examples than among all, and others after each edit.
_constants_of_modules = providers._get_local_constants
providers._get_local_constants = lambda: (
    Constants() if settings().derandomize else _constants_of_modules()
)


# Test collection makes no garbage; searching it again and again took 5 % of the time of all tests.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from here on, only of tests, and less often than every 700 objects."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


# Lines of commands are asserted whole; tests of narrow terminals set their own width.
os.environ["COLUMNS"] = "200"

# What a test reads on stderr must not depend on whether the cache of compiled code is filled.
event.unregister("numba:compile", COMPILING_LINES)

# Modules of these folders take longest; they begin first, so that no worker ends long after others.
_FIRST = (
    "scenarios_train",
    "agents_ppo",
    "calibration_reference",
    "calibration_commands",
    "des_compiled",
    "agents_hi_ppo_moves",
    "scenarios_study_targets",
    "house",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long modules first."""
    places = {name: place for place, name in enumerate(_FIRST)}
    items.sort(key=lambda item: places.get(item.path.parent.name, len(places)))


_NUM_THREADS = torch.get_num_threads()  # before any test or fixture of a module changes it


@pytest.fixture(autouse=True)
def _torch_threads_stay() -> Iterator[None]:
    """Commands set the number of threads, on which the last bits of first weights depend."""
    yield
    torch.set_num_threads(_NUM_THREADS)


@pytest.fixture(scope="session")
def golden_astra(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the recorded cases of ASTRA-sim, unpacked once: ``astra`` and ``astra_corners``."""
    folder = tmp_path_factory.mktemp("golden")
    for archive in (CASES, CORNERS):
        unpack(archive, folder)
    return folder
