"""Megatron-Bridge's rows: how they are read, what is predicted of them, and how it is judged."""

import math

import pytest

from scenarios.reproduce.cases import PUBLISHED
from scenarios.reproduce.command import main
from scenarios.reproduce.megatron_bridge import DENSE, SPARSE, predict_bridge, reproduce
from scenarios.reproduce.megatron_bridge_rows import BridgeRow, read_bridge_rows, step_s

SHIPPED = PUBLISHED / "megatron_bridge"
HEAD = ",".join(BridgeRow.model_fields)
ROW = "26.04,pretrain,LLAMA3_70B,DGX-H100,64,FP8,256,1,8192,0,4,8,1,5,,1633,731"
SMALL = "25.11,pretrain,LLAMA3_8B,DGX-B200,8,FP8-CS,128,2,8192,0,1,1,1,1,1,30624,1578"
MOE = "26.04,pretrain,Qwen3_30B_a3B,DGX-GB300,8,MXFP8,512,8,4096,0,1,1,1,1,8,31470,723"
UNKNOWN = "26.04,pretrain,Kimi_K2,DGX-GB300,256,MXFP8,4096,2,4096,0,1,4,1,4,64,5332,1090"
SPREAD = "26.04,pretrain,Qwen3_235B_a22B,DGX-H100,256,FP8,8192,1,4096,0,2,8,1,4,32,1686,250"
TOO_FAR = SPREAD.replace(",4,32,", ",4,64,")


def written(folder, *rows):
    path = folder / "rows.csv"
    path.write_text("\n".join((HEAD, *rows)) + "\n")
    return path


def row_of(text, folder):
    (row,) = read_bridge_rows(written(folder, text))
    return row


def test_the_shipped_rows_are_read_and_most_are_predicted():
    rows = list(read_bridge_rows(SHIPPED / "rows.csv"))

    assert len(rows) == 145
    assert {row.misfit for row in rows} == {"", "the model has no preset"}
    assert sum(not row.misfit for row in rows) == 96


def test_the_fitted_constant_makes_the_errors_of_llama_3_on_h100_cancel_out():
    """Each of its two configurations counts once, by the mean of its releases."""
    errors: dict[str, list[float]] = {}
    for row in read_bridge_rows(SHIPPED / "rows.csv"):
        if row.system == "DGX-H100" and row.model.startswith("LLAMA3"):
            off = math.log(row.predicted_tokens_per_s_gpu / row.tokens_per_s_gpu)
            errors.setdefault(row.model, []).append(off)

    assert {model: len(each) for model, each in errors.items()} == {
        "LLAMA3_70B": 4,
        "LLAMA3.1_405B": 2,
    }
    means = [sum(each) / len(each) for each in errors.values()]
    assert abs(sum(means) / 2) < 0.01
    assert max(map(abs, means)) < 0.06


def test_work_in_fewer_bits_is_quicker_and_releases_are_one_prediction(tmp_path):
    row = row_of(SMALL, tmp_path)
    steps_s = [
        step_s(row.model_copy(update={"precision": name})) for name in ("BF16", "MXFP8", "NVFP4")
    ]

    assert steps_s == sorted(steps_s, reverse=True)
    later = row.model_copy(update={"release": "26.02", "tokens_per_s_gpu": 1.0})
    assert later.predicted_tokens_per_s_gpu == row.predicted_tokens_per_s_gpu
    assert row.predicted_tokens_per_s_gpu * 8 * step_s(
        row.model_copy(update={"release": "", "tokens_per_s_gpu": 1.0, "model_tflops_gpu": 1.0})
    ) == pytest.approx(128 * 8192)


@pytest.mark.parametrize(
    ("row", "graphs", "hides_all_to_alls"),
    [
        (SMALL, "none", False),
        (MOE, "partial", False),
        (MOE.replace("26.04,", "26.06.01,"), "full", True),
        (MOE.replace("26.04,", "26.06,").replace("MXFP8", "BF16"), "partial", False),
        (MOE.replace("26.04,", "26.08,").replace("GB300", "B200"), "partial", True),
        (SPREAD, "none", True),
        (SPREAD.replace("H100", "B300").replace("FP8", "MXFP8"), "none", False),
    ],
)
def test_graphs_and_hidden_all_to_alls_are_those_of_the_recipes(
    row, graphs, hides_all_to_alls, tmp_path
):
    kernels = row_of(row, tmp_path).kernels

    assert (kernels.graphs, kernels.hides_all_to_alls) == (graphs, hides_all_to_alls)


def test_the_table_keeps_its_targets():
    """10 % of dense models, 20 % of mixtures of experts, on all shipped rows."""
    for bound in reproduce(predict_bridge(SHIPPED)).bounds:
        assert bound.met


def test_a_table_tells_kinds_apart_and_names_what_it_leaves_out(tmp_path):
    written(tmp_path, SMALL, MOE, UNKNOWN, SPREAD, TOO_FAR)

    table = predict_bridge(tmp_path)
    judged = reproduce(table)

    assert [cell.quantity for cell in table.cells] == [DENSE, SPARSE, SPARSE]
    assert [target.recorded for target in table.targets] == [None, None]
    assert "Not predicted, as the model has no preset: 1 rows of Kimi_K2." in judged.notes
    assert any("GPUs of a stage: 1 rows of Qwen3_235B_a22B" in one for one in judged.notes)
    assert len(judged.bounds) == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW.replace("DGX-H100", "DGX-A100"), "line 2: system must be one of DGX-H100, "),
        (ROW.replace(",FP8,", ",FP6,"), "line 2: precision must be one of BF16, "),
        (ROW.replace(",64,FP8", ",63,FP8"), "line 2: gpus must be a multiple of tp x pp x cp"),
        (ROW.replace("1633", "-1"), "line 2: tokens_per_s_gpu"),
        (ROW.replace("8192,0", "many,0"), "line 2: sequence_length"),
    ],
)
def test_rows_that_cannot_be_are_named(row, message, tmp_path):
    path = written(tmp_path, row)

    with pytest.raises(ValueError, match=f"^{path}: {message}"):
        list(read_bridge_rows(path))


def test_a_folder_without_known_models_is_bad_input(tmp_path, capsys):
    written(tmp_path, UNKNOWN)

    assert main(["megatron_bridge", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "must be a folder with rows of known models" in capsys.readouterr().err
