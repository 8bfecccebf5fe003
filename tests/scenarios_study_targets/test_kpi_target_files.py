"""Files of the table of targets: timings, numbers, and sources that have changed."""

import json
import math
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from kept_targets import FILES, QUIET, TINY, error_of, targets

from agents.ppo.shipped_weights import SHIPPED
from des import read_topology, write_topology
from scenarios.frame.statistics import MeanInterval
from scenarios.study.targets.command import main
from scenarios.study.targets.results_store import (
    KeptGroup,
    Origin,
    path_of,
    read_kept,
    store_result,
)
from scenarios.study.targets.target import Goal, Target


def test_timings_are_those_that_were_measured(tmp_path):
    """They would be others if they were measured again, to the last bit at least."""
    out = tmp_path / "out"
    flags = [*TINY, "--method", "search_once", "--targets", "response", "--out", str(out)]
    assert main(flags) == 0
    before = [(out / name).read_bytes() for name in FILES]

    assert main(["--resume", *QUIET, "--out", str(out)]) == 0

    assert [(out / name).read_bytes() for name in FILES] == before


def test_files_that_have_changed_since_are_refused(tmp_path, capsys):
    """Checkpoints, the local agent and the world: each by what is in it, not by its name."""
    paths = {
        name: tmp_path / name for name in ("seed.safetensors", "local.safetensors", "world.yaml")
    }
    shutil.copyfile(SHIPPED / "hi_ppo-0.safetensors", paths["seed.safetensors"])
    shutil.copyfile(SHIPPED / "local-0.safetensors", paths["local.safetensors"])
    write_topology(paths["world.yaml"], read_topology("east_central_west"))
    out = tmp_path / "out"
    named = ["--checkpoint", paths["seed.safetensors"], "--local", paths["local.safetensors"]]
    named += ["--world", paths["world.yaml"]]
    sizes = ["--short", "--num-epochs", "1", "--num-draws", "1", "--targets", "communication"]
    quiet = [*QUIET, "--out", str(out)]
    assert main([*sizes, *map(str, named), *quiet]) in (0, 1)
    results = [(out / name).read_bytes() for name in FILES]
    others = {
        "seed.safetensors": ("checkpoint", (SHIPPED / "hi_ppo-1.safetensors").read_bytes()),
        "local.safetensors": ("local", (SHIPPED / "local-1.safetensors").read_bytes()),
        "world.yaml": ("world", paths["world.yaml"].read_bytes() + b"\n"),
    }

    for name, (flag, content) in others.items():
        before = paths[name].read_bytes()
        paths[name].write_bytes(content)
        error = error_of(["--resume", "--out", str(out)], capsys)
        assert f"seed-communication.json: sha256.{flag} must be that of {paths[name]}, " in error
        paths[name].write_bytes(before)

    assert main(["--resume", *quiet]) in (0, 1)
    assert [(out / name).read_bytes() for name in FILES] == results


@given(group=st.lists(targets(), max_size=3))
def test_targets_come_back_exactly_as_they_were(group):
    """Field by field as Python writes them, so that 1 is not 1.0 and NaN is itself."""
    key, origin = ("seed-0", "time"), Origin(flags={"seed": 0}, files={}, sha256={})
    kept = KeptGroup(targets=tuple(group), source_revision=None)
    with TemporaryDirectory() as folder:
        found = store_result(Path(folder), key, origin, kept)
        later = read_kept(Path(folder), {key: origin, ("seed-0", "gap"): origin})

    assert repr(found) == repr(kept)
    assert repr(later) == repr({key: kept})


def test_numbers_that_json_does_not_have_are_written_as_text(tmp_path):
    target = Target(
        name="nan",
        definition="",
        reference="",
        goal=Goal(sense="below", target=1.0),
        value=-math.inf,
        interval=MeanInterval(mean=0.1, half_width=math.nan),
    )
    key, origin = ("seed0", "gap"), Origin(flags={}, files={}, sha256={})

    found = store_result(
        tmp_path, key, origin, KeptGroup(targets=(target,), source_revision="0123abc")
    )

    written = json.loads(path_of(tmp_path, key).read_text())["targets"][0]
    assert (written["value"], written["interval"]["half_width"]) == ("-inf", "nan")
    assert found.targets[0].name == "nan"
    assert found.targets[0].value == -math.inf
    assert math.isnan(found.targets[0].interval.half_width)
