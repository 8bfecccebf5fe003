"""Targets on real sites: the search over all families against one site and the proven bound."""

import re

import pandas as pd
import pytest
from command_output import assert_refused

from agents.replanning.table import scheduler_makers
from scenarios.study.targets.command import main
from scenarios.study.targets.measurement_size import SITE_COUNTS, SchedulerColumn, Scope
from scenarios.study.targets.sizes import SHORT
from scenarios.study.targets.time_and_utilisation import times_of

TINY = ["--sites", "--short", "--num-worlds", "1", "--num-epochs", "2", "--trainer", "ideal"]
TINY += ["--figures", ""]


def test_the_search_over_all_families_is_measured_on_sites(tmp_path, capsys):
    assert main([*TINY, "--targets", "time,communication", "--out", str(tmp_path / "out")]) in (
        0,
        1,
    )
    shown = capsys.readouterr().out

    rows = pd.read_csv(tmp_path / "out" / "kpi.csv").set_index("name")
    assert set(rows["column"]) == {"decide"}
    assert 0.0 <= rows.loc["training time", "value"] < 1.0  # one site is a plan of the search
    assert "the proven bound allows" in shown
    assert "M tokens a step: median" in shown
    assert "1 worlds a suite of real sites" in shown


def test_no_plan_on_sites_is_below_the_proven_bound():
    scope = Scope(sizes=SHORT, has_sites=True)
    column = SchedulerColumn(name="decide", make=scheduler_makers()["decide"], scope=scope)

    for name in ("eval_static", "hard"):
        for world in scope.worlds(name, 2, SITE_COUNTS[:2]):
            times = times_of(column, world, 0)
            assert world.suite.startswith("sites_")
            assert times.physical_s <= times.least_s <= min(times.own_s, times.uniform_s)
            assert times.least_s <= times.single_s


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--targets", "gap"], "some of time, communication, response, fluctuation with sites"),
        (
            ["--checkpoint", "a.safetensors"],
            "checkpoint must be left out with sites, got a.safetensors",
        ),
        (["--world", "aws_like"], "network must be left out with sites, got aws_like"),
    ],
)
def test_what_does_not_apply_to_sites_is_refused_by_name(flags, message, tmp_path, capsys):
    out = tmp_path / "out"
    flags = ["--sites", *flags, "--out", str(out)]
    assert_refused(main, flags, re.escape(message), capsys, unwritten=out)
