"""Shipped folders of measured runs: stated bounds, and rules that move predictions."""

import contextlib
import io
import re
import shutil
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sailor_folder import exact_blocking_s

from scenarios.reproduce.cases import PUBLISHED
from scenarios.reproduce.command import main
from scenarios.reproduce.sailor import reproduce
from scenarios.reproduce.sailor_cases import read_folder
from scenarios.reproduce.sailor_model import NAIVE, ModelledEffects, predict_s, simulate_s

SHIPPED = PUBLISHED / "sailor"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Folder of files of the shipped runs, and what was printed."""
    folder, shown = tmp_path_factory.mktemp("sailor"), io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main(["sailor", "--cases", str(SHIPPED), "--out", str(folder)]) == 0
    return folder, shown.getvalue()


@pytest.fixture(scope="module")
def reproduction():
    """The shipped runs and their bounds."""
    return reproduce(read_folder(SHIPPED))


def test_the_table_on_screen_is_80_columns_wide_and_the_files_have_all_columns(written):
    folder, shown = written

    lines = shown.splitlines()
    rows = [line.rstrip() for line in lines if re.match(r"N\d+_pp", line)]
    assert len(rows) == 24
    assert max(map(len, rows)) <= 80
    assert "further columns are in the files" in "\n".join(lines)
    table = pd.read_csv(folder / "table.csv")
    assert {"run", "plain_1f1b_error_percent", "Metis_error_percent"} <= set(table.columns)


def test_the_ends_of_an_iteration_are_too_long_by_at_most_what_is_said():
    """At most 0.4 % of the measured times, against the runtime's own instructions."""
    cases = read_folder(SHIPPED)
    shares = []
    for run, measured in zip(cases.runs, cases.measurements, strict=True):
        for stages in set(run.replicas):
            times_s = profiled_times_s(run, cases.network, stages)
            exact_s = exact_blocking_s(*times_s, run.num_microbatches)
            forward_s, backward_s, down_s, up_s = times_s
            for border in range(len(down_s)):
                forward_s[border + 1] += down_s[border] + up_s[border]
                backward_s[border] += down_s[border] + up_s[border]
            free = [0.0] * len(down_s)
            ours_s = simulate_s(forward_s, backward_s, free, free, run.num_microbatches)
            shares.append((ours_s - exact_s) / measured.measured_iter_s)

    assert min(shares) >= -1e-9
    assert 0.002 < max(shares) <= 0.004


def profiled_times_s(run, network, stages):
    """Passes with their gathers, and messages down and up, as the profiles have them."""
    forward_s = [stage.forward_s for stage in stages]
    backward_s = [stage.backward_s for stage in stages]
    down_s, up_s = [], []
    num_gpus = run.tensor_parallel
    for border, (upper, lower) in enumerate(pairwise(stages)):
        num_bytes = upper.activation_bytes
        for ends, times in (((upper, lower), down_s), ((lower, upper), up_s)):
            types = (stage.gpu_type for stage in ends)
            bandwidth = network.node_bandwidth_bytes_per_s(*types, num_gpus, num_bytes)
            times.append(num_bytes / bandwidth)
        for stage, passes, at in ((lower, forward_s, border + 1), (upper, backward_s, border)):
            part = num_bytes / num_gpus
            bandwidth = network.gpu_bandwidth_bytes_per_s(stage.gpu_type, num_gpus, part)
            passes[at] += (num_gpus - 1) * part / bandwidth
    return forward_s, backward_s, down_s, up_s


def test_the_bounds_are_met_and_the_error_of_plain_1f1b_is_as_published(reproduction):
    errors = (
        reproduction.frame.drop(columns=["run", "short_name"])
        .set_index("cluster")
        .filter(like="_error_")
    )
    means = errors.abs().groupby("cluster", sort=False).mean()

    assert [bound.met for bound in reproduction.bounds] == [True, True]
    assert [bound.allowed for bound in reproduction.bounds] == ["at most 6.26", "at most 5.33"]
    assert len(reproduction.frame) == 24
    np.testing.assert_allclose(means["plain_1f1b_error_percent"], [6.8, 5.3], atol=0.1)
    np.testing.assert_allclose(means["SAILOR_error_percent"], [6.3, 6.1], atol=0.05)
    np.testing.assert_allclose(means["Metis_error_percent"], [9.0, 5.3], atol=0.05)


def test_no_prediction_sees_what_was_measured(reproduction, tmp_path):
    """With measured times shuffled and everything else measured or estimated left out."""
    runs = pd.read_csv(SHIPPED / "real_runs.csv", dtype=str, keep_default_na=False)
    expected = reproduction.frame["predicted_s"]
    for path in SHIPPED.glob("*.csv"):
        shutil.copyfile(path, tmp_path / path.name)
    seen = [c for c in runs if c.startswith(("measured_", "est_")) and c != "measured_iter_s"]
    blind = runs.drop(columns=seen)
    blind["measured_iter_s"] = runs["measured_iter_s"].to_numpy()[::-1]
    blind.to_csv(tmp_path / "real_runs.csv", index=False)

    frame = reproduce(read_folder(tmp_path)).frame

    assert frame["predicted_s"].tolist() == expected.tolist()
    assert frame["measured_s"].tolist() == runs["measured_iter_s"].astype(float).tolist()[::-1]


def test_each_rule_alone_moves_some_prediction():
    """No switch is idle, so the table of effects says something."""
    cases = read_folder(SHIPPED)
    for rule in ("whole_update", "node_bandwidth", "blocking", "in_node_gather"):
        alone = ModelledEffects(**{rule: True})
        assert any(
            predict_s(run, cases.network, alone) != predict_s(run, cases.network, NAIVE)
            for run in cases.runs
        )


def test_two_runs_write_the_same_bytes(written, tmp_path, capsys):
    assert main(["sailor", "--cases", str(SHIPPED), "--out", str(tmp_path)]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())

    assert names == ["picture.png", "report.html", "table.csv", "table.md"]
    for name in names:
        assert (tmp_path / name).read_bytes() == (written[0] / name).read_bytes()
    assert "fitted to measured times: none" in capsys.readouterr().out
