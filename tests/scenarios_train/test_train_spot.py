"""The training of a pointer over sets of sites: worlds, files, and what it says at its end."""

import numpy as np
import pandas as pd
import pytest
from spot_cases import three_sites, write_clone

from des.dynamics.site_course import SiteCourse
from des.spot.spot_law import draw_course
from scenarios.reproduce.cases import PUBLISHED, read_cases
from scenarios.reproduce.spot_sites import SiteSets
from scenarios.train.spot_worlds import SpotTrainingWorlds
from scenarios.train.train_spot import run, share_lines

ROWS = read_cases(PUBLISHED / "spot.json", SiteSets, PUBLISHED / "spot.json").rows


def test_worlds_to_train_on_are_a_function_of_the_seed():
    """Half of traces, half of drawn laws; no longer than an episode."""
    one, other = (draw_course(three_sites(), seed, 9000, 195.0) for seed in (0, 1))
    sites = tuple(f"row{place}" for place in range(6))
    known = SiteCourse(sites=sites, tick_s=195.0, up=np.hstack([one.up, other.up]))
    worlds = SpotTrainingWorlds.of(ROWS, known)

    for seed in range(12):
        (world, law), (again, _) = worlds(seed), worlds(seed)
        assert np.array_equal(world.course.up, again.course.up)
        assert len(law.sites) == len(world.course.sites) == 5
        assert 0 < world.course.num_ticks <= 1600
    names = {worlds(seed)[1].sites[0].name.startswith("row") for seed in range(12)}
    assert names == {True, False}
    assert SpotTrainingWorlds.of(ROWS, None)(3)[0].course.num_ticks == 1600


@pytest.mark.parametrize(("lead", "verdict"), [(3.5, "gate passed"), (2.5, "gate not passed")])
def test_the_gate_asks_three_points_over_every_rule_on_unseen_families(lead, verdict):
    """A learnt policy ahead of every rule by as much in every instance."""
    rows = [
        {
            "suite": suite,
            "method": method,
            "policy": 0,
            "instance": str(place),
            "share_percent": 80.0 + place + (lead if method == "learnt" else 0.0),
        }
        for suite in ("known", "2022")
        for method in ("hysteresis", "survival", "sampled", "learnt")
        for place in range(4)
    ]

    *_, last = share_lines(pd.DataFrame(rows))

    assert last.startswith(f"{verdict}: +{lead:.2f} ± 0.00 points over")


def test_a_short_training_writes_its_files_and_a_verdict(tmp_path, capsys):
    clone, out = write_clone(tmp_path / "traces"), tmp_path / "out"
    flags = ["--traces", str(clone), "--steps", "256", "--envs", "1", "--instances", "2"]

    code = run([*flags, "--out", str(out)], "python -m scenarios.east_west_train spot")

    assert code == 0
    assert {"spot-0.safetensors", "curve-0.csv", "shares.csv"} <= {
        one.name for one in out.iterdir()
    }
    assert "gate" in capsys.readouterr().out
