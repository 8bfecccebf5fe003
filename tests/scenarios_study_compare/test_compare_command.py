"""The comparison of planners and rules: its statistics by hand, the command on seconds of work."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from command_output import assert_refused, error_of
from epoch_cases import tables_by_hand
from hypothesis import given
from hypothesis import strategies as st

from agents.replanning.tables import foreseen
from scenarios.frame.statistics import mean_and_interval
from scenarios.study.compare.bootstrap import paired_bootstrap
from scenarios.study.compare.command import main
from scenarios.study.compare.dynamic_part import Draw, foreseen_rules, online_rules, walk
from scenarios.study.compare.summary import (
    best_single_rule,
    foreseen_part,
    hindsight_excess,
    static_summary,
)

METHODS = "search,uniform,single_domain,static,greedy,H4,H4_foreseen,clairvoyant"
TINY = ["--num-worlds", "1", "--num-draws", "2", "--num-domains", "4", "--num-epochs", "3"]
TINY += ["--trainer", "ideal"]
BOTH = [*TINY, "--suite", "eval_static,hard", "--planners", METHODS]
SAME_BYTES = (
    "config.json",
    "static.csv",
    "dynamic.csv",
    "static_summary.csv",
    "dynamic_summary.csv",
    "summary.json",
    "static.png",
    "dynamic.png",
)


def seeded():
    return np.random.default_rng(5)


def test_a_constant_difference_has_an_interval_of_no_width():
    """11 against 10 in eight worlds: 10 % and nothing else, as rare as resamples can say."""
    found = paired_bootstrap([11.0] * 8, [10.0] * 8, range(8), rng=seeded())

    assert (found.mean, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    assert found.p_value == 2 / 4001
    assert found.num_worlds == 8


def test_signs_that_balance_mean_nothing():
    found = paired_bootstrap([1.1, 0.9] * 6, [1.0] * 12, range(12), rng=seeded())

    assert found.mean == pytest.approx(0.0)
    assert found.low < 0.0 < found.high
    assert found.p_value > 0.5


def test_of_many_normal_differences_the_interval_is_that_of_the_normal_law():
    """200 worlds: 1.96 standard errors either way, to what 4000 resamples tell."""
    values = 1.0 + seeded().normal(0.02, 0.1, 200)

    found = paired_bootstrap(values, np.ones(200), range(200), rng=seeded())

    normal = mean_and_interval(values - 1.0)
    assert found.low == pytest.approx(normal.low, abs=0.1 * normal.half_width)
    assert found.high == pytest.approx(normal.high, abs=0.1 * normal.half_width)


def test_draws_of_one_world_are_one_case():
    """World 0 has a hundred draws at +10 %, six others have one at -10 %: -50 / 7 % on the mean."""
    worlds = [0] * 100 + [1, 2, 3, 4, 5, 6]
    values = [1.1] * 100 + [0.9] * 6

    found = paired_bootstrap(values, [1.0] * 106, worlds, rng=seeded())

    assert found.mean == pytest.approx(-0.5 / 7)
    assert found.num_worlds == 7


def test_few_worlds_have_no_p_value():
    assert math.isnan(paired_bootstrap([2.0] * 5, [1.0] * 5, range(5), rng=seeded()).p_value)


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=8), st.floats(0.1, 10.0))
def test_the_unit_of_time_does_not_matter(values, unit):
    references = [1.0] * len(values)
    one = paired_bootstrap(values, references, range(len(values)), rng=seeded())
    other = paired_bootstrap(
        [unit * value for value in values],
        [unit] * len(values),
        range(len(values)),
        rng=seeded(),
    )

    assert one.mean == pytest.approx(other.mean, abs=1e-12)
    assert one.low <= one.mean + 1e-12
    assert one.mean <= one.high + 1e-12


@pytest.mark.parametrize(
    ("values", "references", "worlds", "resamples", "message"),
    [
        ([], [], [], 4000, "must be as many, one or more"),
        ([1.0], [1.0, 2.0], [0], 4000, "must be as many"),
        ([1.0], [0.0], [0], 4000, "references positive"),
        ([math.nan], [1.0], [0], 4000, "values must be finite"),
        ([1.0], [1.0], [0], 1999, "num_resamples must be at least 2000, got 1999"),
    ],
)
def test_what_cannot_be_compared_is_refused(values, references, worlds, resamples, message):
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(values, references, worlds, rng=seeded(), num_resamples=resamples)


def test_one_rule_for_all_and_the_best_of_each_world():
    """Over 10 s: rule a has 10 and 40 %, rule b 30 and 10 %; the clairvoyant is no rule.

    Nor is a, where it knows all plans of the draw and has 5 and 5 %: that is told apart.
    """
    rows = pd.DataFrame(
        [
            {"method": method, "world": name, "draw": 0, "best_s": 10.0, "time_s": time_s}
            for method, times in {
                "a": (11, 14),
                "b": (13, 11),
                "a_foreseen": (10.5, 10.5),
                "clairvoyant": (10, 10),
            }.items()
            for name, time_s in zip("xy", times, strict=True)
        ]
    )

    assert best_single_rule(rows) == "b"
    assert hindsight_excess(rows) == pytest.approx([0.1, 0.1])
    assert best_single_rule(foreseen_part(rows)) == "a"
    assert hindsight_excess(foreseen_part(rows)) == pytest.approx([0.05, 0.05])
    with pytest.raises(ValueError, match="rules must hold one besides the clairvoyant"):
        best_single_rule(rows[rows["method"] == "clairvoyant"])


def test_rules_know_later_plans_under_the_names_that_say_so_alone():
    """The second plan takes 1 s instead of 10 and comes up in the last of three epochs."""
    known = replace(
        tables_by_hand([[10.0, 1.0]] * 3, 2.0 * (1.0 - np.eye(2)), base_s=[1.0, 2.0], epoch_s=10.0),
        known_from=np.array([0, 2]),
    )
    names = ("static", *foreseen_rules(), *(name for name in online_rules() if name != "static"))

    paths, seconds = walk(Draw(tables=known, samples=foreseen(known)), names)

    assert paths.keys() == seconds.keys() == set(names)
    for name in online_rules().keys() - {"static"}:
        assert paths[name].tolist() in ([0, 0, 1], [0, 0, 0]), name
    for name in ("H1", "H64", "greedy", "VI"):
        assert paths[name].tolist() == [0, 0, 1], name
        assert paths[f"{name}_foreseen"].tolist() == [1, 1, 1], name
    assert paths["static"].tolist() == [0, 0, 0]
    assert "static_foreseen" not in names


def test_gaps_are_over_proven_cases_in_which_the_plan_fits():
    """Of four cases one has no proof, one a plan that does not fit, one no plan at all."""
    nothing = {"utilisation": 0.5, "cost_bytes": 1.0, "method": "own", "draw": 0, "bound_s": 8.0}
    nothing |= {"is_same_training": True}
    rows = pd.DataFrame(
        [
            {"world": "a", "best_s": 10.0, "time_s": 11.0, "fits_memory": True, "error": ""},
            {"world": "b", "best_s": math.nan, "time_s": 9.0, "fits_memory": True, "error": ""},
            {"world": "c", "best_s": 10.0, "time_s": 5.0, "fits_memory": False, "error": ""},
            {"world": "d", "best_s": 10.0, "time_s": None, "fits_memory": False, "error": "no"},
        ]
    ).assign(**nothing)

    (line,) = static_summary(rows).to_dict("records")

    assert line["gap"] == line["p95_gap"] == pytest.approx(0.1)
    assert line["over_bound"] == pytest.approx(0.25)  # 11 and 9 over 8, those that fit
    assert (line["num_cases"], line["num_proven"], line["num_without_plan"]) == (4, 1, 1)
    assert line["num_over_memory"] == 1


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison in one process."""
    out = tmp_path_factory.mktemp("compare") / "one"
    assert main([*BOTH, "--out", str(out)]) == 0
    return out


def test_the_rows_do_not_depend_on_the_number_of_processes(compared, tmp_path):
    out = tmp_path / "two"

    assert main([*BOTH, "--workers", "2", "--out", str(out)]) == 0

    for name in SAME_BYTES:
        assert (compared / name).read_bytes() == (out / name).read_bytes(), name


def test_no_method_beats_the_proof_or_the_clairvoyant(compared):
    static, dynamic = (pd.read_csv(compared / f"{name}.csv") for name in ("static", "dynamic"))

    proven = static[static["best_s"].notna() & static["fits_memory"]]
    alone = proven[proven["plan"].str.count(r"\|") == 0]
    assert {"search", "uniform", "single_domain"} <= set(static["method"])
    assert (alone["time_s"] >= alone["best_s"] * (1 - 1e-12)).all()
    assert (dynamic["time_s"] >= dynamic["best_s"] * (1 - 1e-12)).all()
    assert {"static", "greedy", "H4", "H4_foreseen", "clairvoyant"} == set(dynamic["method"])
    assert (compared / "dynamic.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads((compared / "summary.json").read_text())
    assert summary["rules"]["hard"]["best_single_rule"] in ("static", "greedy", "H4")
    assert summary["rules"]["hard"]["foreseen"]["best_single_rule"] == "H4"


def test_what_is_there_is_not_measured_again(compared, capsys):
    """A case that was lost is measured again, to the same bytes; the others are left alone."""
    before = {name: (compared / name).read_bytes() for name in SAME_BYTES}
    kept, lost = sorted((compared / "cases").iterdir())[:2]
    times = kept.stat().st_mtime_ns
    lost.unlink()

    assert main([*BOTH, "--out", str(compared)]) == 0

    assert kept.stat().st_mtime_ns == times
    assert {name: (compared / name).read_bytes() for name in SAME_BYTES} == before
    assert "best single rule" in capsys.readouterr().out


def test_a_folder_of_another_comparison_is_refused(compared, capsys):
    flags = [*BOTH, "--seed", "1", "--out", str(compared)]

    assert "holds another comparison, which differs in seed" in error_of(main, flags, capsys)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--suite", "hrad"], "unknown name 'hrad' in suite; did you mean 'hard'?"),
        (["--suite", "train"], "unknown name 'train' in suite"),
        (["--suite", ""], "suite must be one or more"),
        (["--planners", "H3"], "unknown name 'H3' in planners"),
        (["--suite", "hard", "--planners", "uniform"], "planners must hold one that the suites"),
        (["--suite", "hard", "--planners", "clairvoyant"], "a rule besides the clairvoyant"),
        (["--suite", "hard", "--planners", "H8_foreseen"], "and those that know all plans"),
        (["--num-draws", "0"], "num_draws must be at least 1, got 0"),
        (["--num-epochs", "1"], "num_epochs must be at least 2, got 1"),
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (["--suite", "hard", "--num-domains", "7"], "num_domains must be some of 4, 5, 6, 10"),
    ],
)
def test_bad_flags_are_one_line(flags, message, tmp_path, capsys):
    out, message = tmp_path / "out", re.escape(message)
    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)
