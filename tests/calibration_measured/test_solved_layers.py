"""Layer times solved from whole iterations: exact on simulated ones, undetermined ones named."""

import json
from dataclasses import replace

import pytest
from measured_tables import table_file

from calibration.commands.main import main
from calibration.measured.runs import FITTED_FIGURES, PredictedRun, read_runs
from calibration.measured.solved_layers import solve_table
from des.costs.layer_times import layer_seconds, speed_of
from des.costs.profiled_times import name_layer
from des.world.files.profile_files import read_layer_profile
from des.world.layer_profiles import LayerProfile, ProfilePoint

RUNS = (
    {"num_layers": 4},
    {"num_layers": 8},
    {"num_layers": 8, "global_batch": 16},
    {"num_layers": 8, "microbatch_size": 2, "global_batch": 16},  # alone at its place
    {"hidden_size": 128, "num_layers": 2, "global_batch": 1},  # overheads for the most part
    {"hidden_size": 128, "num_layers": 2, "global_batch": 2},
)


def simulated_table(folder, *scales):
    """Runs that take what the simulator says with layers of scaled times, one scale a run."""
    table = read_runs(table_file(folder, *RUNS))
    rows = []
    for run, changes, scale in zip(table.runs, RUNS, scales, strict=True):
        plain = PredictedRun(run=run, setup=table.setup, figures=FITTED_FIGURES)
        shape, gpu = plain.workload.shape, speed_of(plain.topology.domains[0])
        passes = layer_seconds(shape, gpu, tensor=run.tensor, data=run.data, exchange_s=0.0)
        point = ProfilePoint(
            layer=name_layer(shape.architecture, 0),
            tensor=run.tensor,
            microbatch_size=run.microbatch_size,
            sequence=run.sequence_length,
            forward_s=scale * passes.forward,
            input_gradient_s=scale * passes.input_gradient,
            weight_gradient_s=scale * passes.weight_gradient,
        )
        profile = LayerProfile(name="true", gpu="a100_80", points=(point,), extrapolates=True)
        rows.append(changes | {"measured_iteration_s": replace(plain, profile=profile).predicted_s})
    return table_file(folder, *rows)


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """Every layer takes 1.3 times what shapes give it."""
    return simulated_table(tmp_path_factory.mktemp("exact"), *[1.3] * len(RUNS))


def test_simulated_iterations_are_solved_exactly(exact):
    solved = solve_table(read_runs(exact))

    (point,) = solved.points
    assert point.scale == pytest.approx(1.3, rel=1e-9)
    assert point.errors == pytest.approx((0.0,) * 3, abs=1e-9)
    assert point.left_out_errors == pytest.approx((0.0,) * 3, abs=1e-9)
    assert all(error < -0.1 for error in point.shaped_errors)
    alone, undetermined = solved.left_out
    assert "microbatch_size 2, sequence_length 32: must have at least 2 runs, got 1" in alone
    assert "hidden_size 128" in undetermined
    assert "layers must take at least 0.5 of every iteration to be determined" in undetermined


def test_runs_left_out_are_predicted_by_the_others(tmp_path):
    """The third run is slower, so without it the others are met, and it is not."""
    (point,) = solve_table(read_runs(simulated_table(tmp_path, 1, 1, 1.2, 1, 1, 1))).points

    assert 1.0 < point.scale < 1.2
    assert 1 / 1.2 - 1 < point.left_out_errors[2] < point.errors[2] < 0.0


def test_the_command_writes_what_is_solved_and_names_the_rest(exact, tmp_path, capsys):
    out = tmp_path / "solved.csv"
    assert main(["profile", "--runs", str(exact), "--out", str(out)]) == 0

    printed = capsys.readouterr().out
    assert "vtrain_single: 1 points solved from 3 iterations; mean absolute error 0.00 %" in printed
    assert printed.count("left out: ") == 2
    (point,) = read_layer_profile(out, gpu="a100_80").points
    assert (point.layer.hidden_size, point.place) == (64, (2, 1, 32))


def test_tables_that_determine_nothing_or_the_same_are_refused(exact, tmp_path, capsys):
    nothing = table_file(tmp_path)
    assert main(["profile", "--runs", str(nothing)]) == 2
    assert "vtrain_single: no layer is determined by its runs: hidden_size 64" in (
        capsys.readouterr().err
    )
    again = tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(exact.read_text())))
    assert main(["profile", "--runs", f"{exact},{again}"]) == 2
    assert "every point must be of one table or of timed layers alone" in capsys.readouterr().err
