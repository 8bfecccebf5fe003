"""Fit of layer times: constants behind made-up measurements are found again."""

import csv
import json
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from command_output import error_of
from measured_tables import ROW, SETUP, table_file

from calibration.commands.main import main
from calibration.measured.kernel_fit import (
    cross_validated_errors,
    fit_kernels,
    layer_time_figures,
    vector_of,
)
from calibration.measured.run_sizes import MeasuredRun
from calibration.measured.runs import LayerTimeFigures, PredictedRun, Setup
from des.world.kernel_figures import FITTED_KERNELS, KernelFigures

TRUE = LayerTimeFigures(
    kernels=KernelFigures(
        matmul_efficiency=0.6, memory_efficiency=0.5, layer_launch_s=1e-3, iteration_overhead_s=0.02
    ),
    step_latency_s=2e-5,
)
SIZES = [
    {"hidden_size": hidden, "microbatch_size": batch, "tensor": tensor, "pipeline": 4 // tensor}
    for hidden, batch, tensor in product((512, 4096), (1, 8), (1, 2, 4))
]


def made_up(sizes):
    """A run whose measured time is that of the simulator with `TRUE`."""
    row = ROW | {"sequence_length": 1024} | sizes
    setup = Setup(**SETUP)
    run = MeasuredRun(**row)
    time_s = PredictedRun(run=run, setup=setup, figures=TRUE).predicted_s
    return run.model_copy(update={"measured_iteration_s": time_s}), setup


SAMPLE = [made_up(sizes) for sizes in SIZES]


def test_constants_and_their_vector_are_one_to_one():
    assert np.allclose(vector_of(layer_time_figures(vector_of(TRUE))), vector_of(TRUE), rtol=1e-12)


def test_the_constants_behind_exact_times_are_found():
    fitted = fit_kernels(SAMPLE)

    assert np.allclose(vector_of(fitted.figures), vector_of(TRUE), atol=0.1)
    assert all(factor >= 1.0 for factor in fitted.intervals)


def test_runs_left_out_are_predicted_by_others():
    errors = cross_validated_errors(SAMPLE, 2)

    assert errors.shape == (len(SAMPLE),)
    assert np.abs(errors).mean() < 0.02


def test_the_command_prints_errors_first_and_writes_what_a_world_takes(tmp_path, capsys):
    rows = [
        {**sizes, "sequence_length": 1024, "measured_iteration_s": run.measured_iteration_s}
        for sizes, (run, _) in zip(SIZES, SAMPLE, strict=True)
    ]
    path = table_file(tmp_path, *rows)
    out = tmp_path / "out"

    assert main(["kernels", "--runs", str(path), "--folds", "2", "--out", str(out)]) == 0

    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith(f"vtrain_single: {len(rows)} runs, mean absolute error ")
    written = json.loads((out / "kernels.json").read_text())
    settings = {"attention_share", "graphs", "hides_all_to_alls"}
    fitted = {*asdict(FITTED_KERNELS), "step_latency_s"} - settings
    assert set(written["interval_95_percent"]) == fitted
    assert written["fitted_on"][0]["runs"] == len(rows)
    assert set(written["kernels"]) == {
        "matmul_efficiency",
        "memory_efficiency",
        "layer_launch",
        "iteration_overhead",
    }
    with (out / "runs.csv").open() as lines:
        assert len(list(csv.DictReader(lines))) == len(rows)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "--runs must name at least one file of measured runs, got none"),
        (("--folds", "1"), "--folds must be at least 2 and at most the 1 runs, got 1"),
    ],
)
def test_bad_flags_end_with_one_line(tmp_path, capsys, flags, message):
    files = ("--runs", str(table_file(tmp_path))) if flags else ()

    assert message in error_of(main, ["kernels", *files, *flags], capsys)
