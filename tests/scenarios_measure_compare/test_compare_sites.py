"""The comparison on real sites: references, planners that are left out, bytes by tokens a step."""

import pandas as pd
import pytest

from scenarios.measure.compare.command import main
from scenarios.measure.compare.saved import saved_by_tokens

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
    flags += ["--num-domains", "24", "--planners", "single_domain,data_parallel,sailor,exact"]

    assert main([*flags, "--out", str(tmp_path / "out")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "planners on sites_static, gap to the best plan of all methods" in shown
    assert "sailor has no plan in 1 of 1 cases: left out: needs more than half a minute" in shown
    assert "exact has no plan in 1 of 1 cases: exact: must have at most" in shown
    rows = pd.read_csv(tmp_path / "out" / "static.csv")
    fitting = rows[rows["fits_memory"]]
    assert (rows["best_s"] == fitting["time_s"].min()).all()
    assert set(rows["tokens_per_step"]) == {rows["tokens_per_step"].iloc[0]}
