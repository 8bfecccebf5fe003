"""Missing extras: one line with the command of pip that brings them."""

import re
from pathlib import Path

import pytest

from scenarios.cluster import scheduler_server
from scenarios.explore import command as explore
from scenarios.frame import outputs

PACKAGES = ("des", "agents", "calibration", "scenarios", "astra-sim")
NAMED = re.compile(r"eastwest\[([a-z0-9-]+)\]")


@pytest.fixture(autouse=True)
def without_extras(monkeypatch):
    for module in (explore, outputs, scheduler_server):
        monkeypatch.setattr(module, "find_spec", lambda name: None)


def test_the_explorer_without_dash_is_one_line_and_code_2(capsys):
    assert explore.main(["--check"]) == 2
    error = capsys.readouterr().err
    assert 'pip install "eastwest[explore]"' in error
    assert len(error.splitlines()) == 1


def test_parquet_without_pyarrow_names_its_package():
    with pytest.raises(ValueError, match="--parquet: needs pyarrow; install it with: pip install"):
        outputs.OutputChoice(parquet=True)


def test_a_redis_state_without_redis_names_its_extra():
    with pytest.raises(ValueError, match=r"pip install 'eastwest\[cluster-redis\]'"):
        scheduler_server.open_store("redis://localhost:6379/0")


def test_every_extra_that_is_named_in_messages_is_one_of_the_package():
    """Names between brackets behind ``eastwest`` in our sources."""
    root = Path(__file__).resolve().parents[2]
    setup = (root / "setup.cfg").read_text("utf-8").partition("[options.extras_require]")[2]
    known = set(re.findall(r"(?m)^([a-z0-9-]+) =", setup))
    sources = [path for name in PACKAGES for path in (root / name).rglob("*.py")]
    named = {one for path in sources for one in NAMED.findall(path.read_text("utf-8"))}

    assert len(named) > 5
    assert named <= known
