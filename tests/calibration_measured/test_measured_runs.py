"""Measured runs: worlds that they become, a prediction by hand, and files that are refused."""

import re

import pytest
from measured_tables import ROW, SETUP, table_file

from calibration.measured.run_sizes import MeasuredRun
from calibration.measured.runs import LayerTimeFigures, PredictedRun, Setup, read_runs
from des.world.kernel_figures import KernelFigures

FREE_KERNELS = KernelFigures(
    matmul_efficiency=1.0, memory_efficiency=1.0, layer_launch_s=1.0, iteration_overhead_s=7.0
)


def predicted(figures=None, **changes):
    return PredictedRun(
        run=MeasuredRun(**(ROW | changes)),
        setup=Setup(**SETUP),
        figures=figures or LayerTimeFigures(kernels=FREE_KERNELS, step_latency_s=0.0),
    )


def test_an_iteration_of_launches_by_hand():
    """Layers so small that the host sets the pace: forward 1 s, backward 2.5 s with the repeat.

    Two stages of two layers and eight microbatches: (8 - 1 + 2) x 2 x 3.5 s, and the overhead.
    """
    assert predicted().predicted_s == pytest.approx(9 * 2 * 3.5 + 7.0, rel=1e-4)


def test_the_relative_error_is_positive_where_the_simulator_is_slow():
    one = predicted(measured_iteration_s=50.0)

    assert one.relative_error == pytest.approx(one.predicted_s / 50.0 - 1.0)
    assert one.relative_error > 0


def test_clusters_have_nodes_where_a_run_needs_several():
    assert predicted().topology.domains[0].nodes is None
    wide = predicted(num_gpus=16, data=4, global_batch=8)
    assert wide.topology.domains[0].nodes.gpus_per_node == 8


@pytest.mark.parametrize(
    ("row", "keys", "message"),
    [
        ({"num_gpus": 5}, {}, "rows[0].num_gpus must be tensor x data x pipeline, 4; got 5"),
        (
            {"data": 2, "num_gpus": 8, "global_batch": 5},
            {},
            "rows[0].global_batch must be a multiple of microbatch_size x data, 2; got 5",
        ),
        ({"num_heads": 5}, {}, "rows[0].hidden_size must be a multiple of num_heads, 5; got 64"),
        ({"measured_iteration_s": -1.0}, {}, "measured_iteration_s"),
        ({}, {"setup": None}, "setup must be given (gpu, gpus_per_node, "),
        ({}, {"setup": SETUP | {"gpu": "a1000"}}, "gpu must be one of v100_32, "),
        ({}, {"source": None}, "source"),
    ],
)
def test_bad_files_are_named_with_field_and_value(tmp_path, row, keys, message):
    path = table_file(tmp_path, row, **keys)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_runs(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
