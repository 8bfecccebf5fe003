"""Folders of profiles and measured runs: bad ones are named, and what is judged is as stated."""

import pandas as pd
import pytest
from sailor_folder import FILES, FIRST_STAGE, LAYERS, LINKS, RUN, STAGES, predicted_s, write_folder

from des.base.command import UsageError
from scenarios.reproduce.command import main
from scenarios.reproduce.sailor_cases import read_folder


def with_cell(file, place, column, value):
    rows = [dict(row) for row in FILES[file]]
    rows[place][column] = value
    return FILES | {file: rows}


BAD_CELLS = [
    ("real_runs.csv", 0, "measured_iter_s", ""),
    ("real_runs.csv", 0, "measured_iter_s", "0"),
    ("real_runs.csv", 0, "measured_iter_s", "nan"),
    ("real_runs.csv", 0, "est_Good_s", "-1"),
    ("real_runs.csv", 0, "usable", "maybe"),
    ("real_runs.csv", 0, "schedule", "GPipe"),
    ("real_runs.csv", 0, "n_microbatches", "2.5"),
    ("real_runs.csv", 0, "transformer_layers", "1"),
    ("real_runs_stages.csv", 1, "fwd_s", "-4"),
    ("real_runs_stages.csv", 1, "bwd_s", "inf"),
    ("real_runs_stages.csv", 0, "replica_ids", "x"),
    ("real_runs_stages.csv", 0, "ar_c0", "fast"),
    ("layer_memory.csv", 4, "params_floats", "none"),
    ("network_profiles.csv", 3, "c1", "NaN"),
]


@pytest.mark.parametrize(("file", "place", "column", "value"), BAD_CELLS)
def test_a_bad_cell_is_named_by_file_line_and_column(tmp_path, file, place, column, value):
    write_folder(tmp_path, with_cell(file, place, column, value))

    with pytest.raises(ValueError, match=rf"{file}, line {place + 2}: .*{column}.*got '{value}'"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (("real_runs_stages.csv", 0, "p2p_c1", ""), "run toy/pp2_dp2, stage 0 on X: p2p_c2"),
        (("real_runs_stages.csv", 0, "send_act_bytes", "0"), "stage 0 on X: .* send_act_bytes"),
        (("real_runs_stages.csv", 0, "ar_c0", ""), "ar_c2, ar_c1 and ar_c0 must .* dp is above 1"),
        (
            ("real_runs_stages.csv", 0, "param_bytes_per_gpu", "1.4e9"),
            "stage 0 on X: param_bytes_per_gpu must be within 50% .* 3e.09 bytes .* got 1.4e.09",
        ),
        (("layer_memory.csv", 4, "params_floats", "9e9"), "stage 1 on X: param_bytes_per_gpu must"),
        (("real_runs_stages.csv", 0, "replica_ids", "0;0"), "each of the replicas 0 to 1 once"),
        (("real_runs_stages.csv", 1, "replica_ids", "1"), "each of the replicas 0 to 1 once"),
        (("real_runs_stages.csv", 1, "run_id", "other"), "each of its 2 stages"),
        (("real_runs_stages.csv", 1, "n_layers", "4"), "for model toy and tp 2, got layer 5"),
        (("real_runs.csv", 0, "usable", "0"), "real_runs.csv: usable must be 1 in some row"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(tmp_path, cell, message):
    write_folder(tmp_path, with_cell(*cell))

    with pytest.raises(ValueError, match=message):
        read_folder(tmp_path)


def test_rows_that_no_usable_run_needs_may_hold_anything(tmp_path):
    """A run that is not usable, its stages, layers of other models, links of other GPUs."""
    unused = RUN | {"usable": "0", "measured_iter_s": "", "dp": "many", "run_id": "other"}
    odd = LINKS[0] | {"c0": "?"}
    files = {
        "real_runs.csv": [unused, RUN, unused],
        "real_runs_stages.csv": [FIRST_STAGE | {"run_id": "other", "fwd_s": "?"}, *STAGES],
        "layer_memory.csv": [LAYERS[0] | {"model": "other", "params_floats": "?"}, *LAYERS],
        "network_profiles.csv": [odd | {"src_gpu": "Y"}, odd | {"scope": "elsewhere"}, *LINKS],
    }

    assert predicted_s(tmp_path, files) == pytest.approx(41.05)
    assert read_folder(tmp_path).num_unusable == 2


def test_a_run_given_twice_is_named_with_both_lines(tmp_path):
    write_folder(tmp_path, FILES | {"real_runs.csv": [RUN, RUN | {"usable": "0"}, RUN]})

    with pytest.raises(
        ValueError, match=r"real_runs.csv, line 4: run_id .* got 'toy/pp2_dp2' as in line 2"
    ):
        read_folder(tmp_path)


@pytest.mark.parametrize("blank", ["", " ", "n/a", "N/A", "nan", "NaN"])
def test_an_estimate_that_is_none_is_left_out(tmp_path, blank):
    write_folder(tmp_path, with_cell("real_runs.csv", 0, "est_Bad_s", blank))

    assert read_folder(tmp_path).measurements[0].published_s == {"Good": 42.0}


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_a_missing_column_and_an_empty_table_are_named(tmp_path, file):
    path = write_folder(tmp_path) / file
    path.write_text(path.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"{file}: must hold at least one row"):
        read_folder(tmp_path)
    path.write_text("something,else\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{file}: must have the column \w+, got something, else"):
        read_folder(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match=f"{file}: cannot be read"):
        read_folder(tmp_path)
    with pytest.raises(UsageError, match="cases: must be a folder"):
        read_folder(tmp_path / "nowhere")


def test_a_row_with_too_many_cells_is_refused(tmp_path):
    path = write_folder(tmp_path) / "layer_memory.csv"
    path.write_text(path.read_text(encoding="utf-8").rstrip() + ",7\n", encoding="utf-8")

    with pytest.raises(ValueError, match=r"layer_memory.csv, line 6: must have 4 cells"):
        read_folder(tmp_path)


def test_bad_input_is_one_line_and_exit_code_2(tmp_path, capsys):
    write_folder(tmp_path, with_cell("real_runs_stages.csv", 0, "fwd_s", "fast"))

    assert main(["sailor", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_set_is_held_against_the_best_published(tmp_path, capsys):
    """Good is 2.3 % too slow on the toy; ours is exact."""
    write_folder(tmp_path)

    assert main(["sailor", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert (
        "met: mean absolute error [%] of 1 runs on toy cluster (Good is the best published "
        "simulator of these runs): 0.00, allowed at most 2.31\n"
    ) in capsys.readouterr().out


def test_a_missed_bound_is_exit_code_1_and_the_table_is_written_all_the_same(tmp_path, capsys):
    write_folder(tmp_path, with_cell("real_runs.csv", 0, "measured_iter_s", "60"))

    assert main(["sailor", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "FAILED: mean absolute error" in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "out" / "table.csv")) == 1


UNJUDGED = "not judged: mean absolute error [%] of 1 runs on"


def test_a_set_that_no_published_simulator_covers_is_not_judged(tmp_path, capsys):
    """Alone, nothing is judged; beside a set with a bound, only that one counts."""
    alone = with_cell("real_runs.csv", 0, "est_Good_s", "n/a")
    write_folder(tmp_path, alone)

    assert main(["sailor", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert f"{UNJUDGED} toy cluster: 0.00; no published simulator covers these runs\n" in shown
    assert "nothing was judged" in shown
    assert "nothing was judged" in (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "nan" not in shown

    other = RUN | {"run_id": "toy/slow", "cluster": "other", "measured_iter_s": "60"}
    stages = [stage | {"run_id": "toy/slow"} for stage in STAGES]
    write_folder(
        tmp_path,
        FILES
        | {"real_runs.csv": [*alone["real_runs.csv"], other]}
        | {"real_runs_stages.csv": [*STAGES, *stages]},
    )
    assert main(["sailor", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().out
    assert f"{UNJUDGED} toy cluster" in shown
    assert "FAILED: mean absolute error [%] of 1 runs on other" in shown
    assert "nothing was judged" not in shown
