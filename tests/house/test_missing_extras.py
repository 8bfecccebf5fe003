"""Missing extras: one line with the command of pip that brings them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from des.base import extras
from scenarios.cluster import scheduler_server
from scenarios.explore import command as explore
from scenarios.frame import outputs
from scenarios.k8s import command as k8s

PACKAGES = ("des", "agents", "calibration", "scenarios", "astra-sim")
NAMED = re.compile(r"eastwest\[([a-z0-9-]+)\]")


@pytest.fixture(autouse=True)
def without_extras(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)


def test_the_explorer_without_dash_is_one_line_and_code_2(capsys):
    assert explore.main(["--check"]) == 2
    error = capsys.readouterr().err
    assert "needs the extra [explore]: pip install 'eastwest[explore]'" in error
    assert len(error.splitlines()) == 1


def test_parquet_without_pyarrow_names_its_package():
    with pytest.raises(ValueError, match=r"--parquet needs the extra \[parquet\]: pip install"):
        outputs.OutputChoice(parquet=True)


def test_a_redis_state_without_redis_names_its_extra():
    with pytest.raises(ValueError, match=r"pip install 'eastwest\[cluster-redis\]'"):
        scheduler_server.open_store("redis://localhost:6379/0")


@pytest.mark.parametrize("words", [["--in-cluster"], ["--kubeconfig", "x"]])
def test_what_asks_kubernetes_without_its_extra_is_one_line(words, capsys):
    assert k8s.main(["agent", "--simulate", "dgx-1-v100", *words]) == 2
    error = capsys.readouterr().err
    assert f"{words[0]} needs the extra [k8s]: pip install 'eastwest[k8s]'" in error
    assert len(error.splitlines()) == 1


_WITHOUT = """
import json, sys
from importlib.machinery import PathFinder

LEFT_OUT = ("torch", "ortools", "tensorboard", "plotly", "pymoo", "chakra")

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_there = name.partition(".")[0] not in LEFT_OUT
        return super().find_spec(name, path, target) if is_there else None

sys.meta_path[:] = [Without if one is PathFinder else one for one in sys.meta_path]
from scenarios.entry.command import main

job = ["--network", "four_uneven", "--model", "llama2_7b", "--num-layers", "4"]
job += ["--microbatches", "2", "--trainer", "ideal", "--json"]
codes = [main(["decide", *job, "--deciders", "hi_ppo", "--across-only"])]
codes.append(main(["train", "--quick", "--out", "run"]))
print(json.dumps(codes))
"""


def test_trained_policies_decide_without_the_extras_and_training_names_its_own(tmp_path):
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'astra-sim'}"},
    )

    assert json.loads(done.stdout.splitlines()[-1]) == [0, 2]
    error = "error: torch is not installed: needs the extra [train]: pip install 'eastwest[train]'"
    assert error in done.stderr.splitlines()


def test_every_extra_that_is_named_in_messages_is_one_of_the_package():
    """Names between brackets behind ``eastwest`` in our sources."""
    root = Path(__file__).resolve().parents[2]
    setup = (root / "setup.cfg").read_text("utf-8").partition("[options.extras_require]")[2]
    known = set(re.findall(r"(?m)^([a-z0-9-]+) =", setup))
    sources = [path for name in PACKAGES for path in (root / name).rglob("*.py")]
    named = {one for path in sources for one in NAMED.findall(path.read_text("utf-8"))}

    assert named | set(extras.EXTRA_OF.values()) <= known
