"""Table of fitted constants: values are those of the simulator, rows are there."""

import pandas as pd
from command_output import error_of

from calibration.measured.runs import FITTED_FIGURES
from des.serving.engines import engine_named
from scenarios.reproduce.command import main
from scenarios.reproduce.constants import list_fitted_constants


def test_the_table_has_every_constant_with_its_value_and_its_rows(tmp_path):
    assert main(["constants", "--out", str(tmp_path / "out"), "--figures", ""]) == 0

    table = pd.read_csv(tmp_path / "out" / "table.csv").set_index(["of", "constant"])
    assert table.index.is_unique
    assert len(table) == sum(len(one.values) for one in list_fitted_constants())
    assert table["fitted on"].notna().all()
    assert table.loc[("kernels of A100", "memory_efficiency"), "value"] == 0.683
    assert table.loc[("round trips by distance", "slope_s_per_km"), "unit"] == "s/km"


def test_values_are_those_that_the_simulator_takes():
    found = {one.owner: one.values for one in list_fitted_constants()}

    name = "h100-llama-3.3-70b-fp8-tp8"
    assert found["kernels of A100"]["step_latency_s"] == FITTED_FIGURES.step_latency_s
    assert found[f"engine {name}"]["base_s"] == engine_named(name).times.base_s


def test_a_folder_without_the_rows_is_refused(tmp_path, capsys):
    flags = ["constants", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]

    assert "cases: must be a folder with crosspipe.json" in error_of(main, flags, capsys)
