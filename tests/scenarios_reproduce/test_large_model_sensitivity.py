"""Sensitivity of MT-NLG: each unpublished fact at its slowest, and all of them."""

from dataclasses import replace

import pytest

from calibration.measured.runs import FITTED_FIGURES, LayerTimeFigures, PredictedRun, read_runs
from scenarios.reproduce.measured import SHIPPED

MEASURED_S = 60.1

SETUPS = {
    "endpoints": "blocking",
    "gradient_precision": "fp32",
    "nic_bandwidth_bytes_per_s": 12.5e9,
    "intra_bandwidth_bytes_per_s": 150e9,
}
"""Senders wait, sums in FP32, half of the cards, half of the NVLinks."""

KERNELS = {
    "matmul_efficiency": 0.75,
    "memory_efficiency": 0.60,
    "layer_launch_s": 1.01e-3,
    "iteration_overhead_s": 26e-3,
}
STEP_LATENCY_S = 43e-6
"""Slow ends of the intervals of all constants that are fitted."""


def predicted_s(setup=(), kernels=(), step_latency_s=FITTED_FIGURES.step_latency_s):
    table = read_runs(SHIPPED / "mtnlg.json")
    (run,) = table.runs
    figures = LayerTimeFigures(
        kernels=replace(FITTED_FIGURES.kernels, **dict(kernels)), step_latency_s=step_latency_s
    )
    changed = table.setup.model_copy(update=dict(setup))
    return PredictedRun(run=run, setup=changed, figures=figures).predicted_s


@pytest.mark.parametrize(
    "changes",
    [
        *({"setup": {name: value}} for name, value in SETUPS.items()),
        *({"kernels": {name: value}} for name, value in KERNELS.items()),
        {"step_latency_s": STEP_LATENCY_S},
    ],
)
def test_no_single_assumption_is_worth_six_percent(changes):
    """Of the 26 % that are missing."""
    as_assumed_s = predicted_s()

    assert as_assumed_s <= predicted_s(**changes) < 1.06 * as_assumed_s


def test_all_assumptions_at_their_slowest_leave_seconds_unexplained():
    slowest_s = predicted_s(SETUPS, KERNELS, STEP_LATENCY_S)

    assert slowest_s == pytest.approx(53.0, abs=0.1)
    assert slowest_s < MEASURED_S
