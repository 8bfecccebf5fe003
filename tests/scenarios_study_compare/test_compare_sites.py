"""The comparison on real sites: references, planners that are left out, bytes by tokens a step."""

import math

import pandas as pd
import pytest
from command_output import assert_refused

from scenarios.study.compare.command import main
from scenarios.study.compare.summary import bound_tightness, saved_by_tokens

NO_PICTURES = ("--figures", "", "--trainer", "ideal")
"""The report has its figures still; only their files are not drawn. Devices are perfect."""

ROW = {"suite": "s", "draw": 0, "is_same_training": True, "fits_memory": True}


def rows_of(*cases):
    """Rows of (world, method, tokens a step, bytes)."""
    names = ("world", "method", "tokens_per_step", "cost_bytes")
    return pd.DataFrame([ROW | dict(zip(names, case, strict=True)) for case in cases])


def test_bytes_are_compared_with_data_parallelism_case_by_case_and_by_tokens():
    """A pipeline sends 3 bytes of 100 at few tokens, and 250 of 100 at many."""
    table = saved_by_tokens(
        rows_of(
            ("a", "data_parallel", 131_072, 100.0),
            ("a", "uniform", 131_072, 3.0),
            ("b", "data_parallel", 4_194_304, 100.0),
            ("b", "uniform", 4_194_304, 250.0),
            ("c", "uniform", 131_072, 5.0),
        )
    )

    assert table["least_tokens"].tolist() == [0, 4_000_000]
    assert table["saved"].tolist() == pytest.approx([0.97, -1.5])
    assert table["num_more"].tolist() == [0, 1]
    assert saved_by_tokens(rows_of(("a", "uniform", 1, 1.0))).empty


def test_sites_are_compared_and_planners_that_cannot_are_said_to_be_left_out(tmp_path, capsys):
    flags = ["--suite", "sites_static", "--num-worlds", "1", "--num-draws", "1"]
    flags += [
        "--seed",
        "22",
        "--num-domains",
        "24",
        "--planners",
        "single_domain,data_parallel,sailor,exact",
    ]

    assert main([*flags, *NO_PICTURES, "--out", str(tmp_path / "out")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "planners on sites_static, gap to the best plan of all methods" in shown
    assert "sailor has no plan in 1 of 1 cases: left out: needs more than half a minute" in shown
    assert "exact has no plan in 1 of 1 cases: exact: must have at most" in shown
    rows = pd.read_csv(tmp_path / "out" / "static.csv")
    fitting = rows[rows["fits_memory"]]
    assert (rows["best_s"] == fitting["time_s"].min()).all()
    assert set(rows["tokens_per_step"]) == {rows["tokens_per_step"].iloc[0]}


def compared(folder, *flags):
    """Rows of a comparison on worlds of two sites, and what it wrote of them."""
    small = ["--num-draws", "1", "--num-domains", "2", *NO_PICTURES]
    assert main([*flags, *small, "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("suite", ["sites_calm", "sites_held", "sites_hard"])
def test_rules_and_the_search_over_families_are_compared_on_moving_sites(suite, tmp_path):
    methods = "static,H4,clairvoyant,decide_h1,decide_h8"
    flags = ["--suite", suite, "--num-worlds", "1", "--num-epochs", "2", "--planners", methods]

    rows = pd.read_csv(compared(tmp_path / "out", *flags) / "dynamic.csv").set_index("method")
    assert set(rows.index) == set(methods.split(","))
    assert rows.loc["clairvoyant", "time_s"] <= rows.loc[["static", "H4"], "time_s"].min()
    assert (rows.loc[["decide_h1", "decide_h8"], "time_s"] > 0.0).all()


def test_answers_of_all_families_are_above_the_bound_of_all_families(tmp_path, capsys):
    methods = "decide,decide_best_schedule"
    flags = ["--suite", "sites_static", "--num-worlds", "2", "--planners", methods]

    outs = [
        compared(tmp_path / families, *flags, "--families", families)
        for families in ("synchronous", "all")
    ]
    unchanged, every = (pd.read_csv(out / "static.csv") for out in outs)
    shown = " ".join(capsys.readouterr().out.split())
    assert "over bound" in shown
    assert "best plan over the proven bound, median [%], by what binds (worlds)" in shown
    assert (unchanged["time_s"] >= unchanged["bound_s"]).all()
    assert (every["time_s"] >= every["bound_s"]).all()
    assert (every["bound_s"] <= unchanged["bound_s"]).all()
    assert unchanged["is_same_training"].all()
    searches = every["method"] == "decide_best_schedule"
    assert every.loc[searches, "time_s"].tolist() == unchanged.loc[searches, "time_s"].tolist()
    best_s = every.groupby("case")["time_s"].transform("min")
    assert (every["best_s"] == best_s).all()


def test_the_best_plans_are_over_the_bound_by_family_size_and_regime():
    """Of three worlds one has no bound; the best plan of a world is 10 or 30 % over it."""
    every = {"suite": "own", "draw": 0, "fits_memory": True}
    rows = pd.DataFrame(
        [
            {"world": "a", "time_s": 11.0, "best_s": 11.0, "family": "single", "num_domains": 4},
            {"world": "a", "time_s": 15.0, "best_s": 11.0, "family": "pipeline", "num_domains": 4},
            {"world": "b", "time_s": 13.0, "best_s": 13.0, "family": "single", "num_domains": 64},
            {"world": "c", "time_s": 9.0, "best_s": 9.0, "family": "hybrid", "num_domains": 4},
        ]
    ).assign(**every, bound_s=[10.0, 10.0, 10.0, math.nan], binds=["work", "work", "bytes", ""])

    found = bound_tightness(rows).set_index(["plans", "binds"])

    assert found["num_worlds"].to_dict() == {
        ("all", "all"): 2,
        ("all", "work"): 1,
        ("all", "bytes"): 1,
        ("single", "all"): 2,
        ("single", "work"): 1,
        ("single", "bytes"): 1,
        ("2 to 4 domains", "all"): 1,
        ("2 to 4 domains", "work"): 1,
        ("25 or more domains", "all"): 1,
        ("25 or more domains", "bytes"): 1,
    }
    assert found.loc[("single", "all"), "over_bound"] == pytest.approx(0.2)
    assert found.loc[("single", "all"), "most"] == pytest.approx(0.3)
    assert found.loc[("2 to 4 domains", "work"), "over_bound"] == pytest.approx(0.1)


def test_examples_are_compared_with_the_ideal_and_by_family(tmp_path, capsys):
    """No plan of two domains of four takes less than the time of all, and nothing is sent."""
    flags = ["--suite", "examples", "--num-worlds", "2", "--num-draws", "1"]
    flags += ["--planners", "single_domain,data_parallel,mast"]

    assert main([*flags, *NO_PICTURES, "--out", str(tmp_path / "out")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "planners on examples, gap to the best plan of all methods" in shown
    assert "time / ideal" in shown
    rows = pd.read_csv(tmp_path / "out" / "static.csv")
    assert set(rows["world"]) == {"four_domains_0", "four_domains_1"}
    assert (rows["ideal_s"] <= rows["bound_s"]).all()
    alone = rows[(rows["method"] == "single_domain") & (rows["world"] == "four_domains_1")]
    assert alone["family"].tolist() == alone["best_family"].tolist() == ["single"]
    summary = pd.read_csv(tmp_path / "out" / "static_summary.csv").set_index("method")
    fits = rows[rows["fits_memory"] & (rows["method"] == "single_domain")]
    assert summary.loc["single_domain", "over_ideal"] == pytest.approx(
        (fits["time_s"] / fits["ideal_s"]).mean()
    )
    assert summary.loc["single_domain", "num_best_family"] == len(fits)
    assert summary.loc["single_domain", "over_ideal"] > 3.0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--num-worlds", "11"], "examples: num_worlds must be at most 10, the examples there are"),
        (["--num-domains", "4"], "examples: num_domains must not be given"),
    ],
)
def test_examples_that_are_not_there_are_refused_before_any_is_measured(
    flags, message, tmp_path, capsys
):
    out = tmp_path / "out"
    asked = ["--suite", "examples", *flags, "--num-draws", "1", "--out", str(out)]
    assert_refused(main, asked, message, capsys, unwritten=out)


def test_families_are_synchronous_or_all(tmp_path, capsys):
    message = "families must be one of synchronous, all; got 'some'"
    flags, out = ["--families", "some"], tmp_path / "out"
    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)
