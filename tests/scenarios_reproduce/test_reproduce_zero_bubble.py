"""Bubble rates by hand, rows that are refused, and models of the published cases."""

import json
import re

import pandas as pd
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from des.job.transformer import model_parameters
from des.schedules import Border, Pipeline, timing_of
from des.schedules.automatic import automatic_zero_bubble
from des.schedules.flush import one_f_one_b
from des.schedules.interleaved import interleaved_1f1b
from des.schedules.zero_bubble import zb_h1, zb_h2
from scenarios.reproduce.command import main
from scenarios.reproduce.zero_bubble import longest_device_s
from scenarios.reproduce.zero_bubble_cases import MODELS, BubbleRow

BY_HAND = {
    "1f1b": 3 / 15,  # (p - 1)(F + D + W) = 3 ms on top of 4 microbatches of 3 ms
    "interleaved_1f1b": 1.5 / 13.5,  # half of that with two chunks
    "zb_h1": 1 / 13,  # (p - 1)(F + D - W)
    "zb_h2": 0.0,  # (p - 1)(F + D - 2 W)
    "zb_2p": 0.0,
}


def row(**changes):
    """Two stages whose passes take 1 ms each, without latency."""
    values = {
        "model": "toy",
        "num_stages": 2,
        "num_microbatches": 4,
        "forward_ms": 1.0,
        "backward_input_ms": 1.0,
        "backward_weight_ms": 1.0,
        "communication_latency_ms": 0.0,
        "chunks_per_device": 2,
        "weight_input_fraction": 0.5,
        "bubble_rate": {name: round(rate, 4) for name, rate in BY_HAND.items()},
    }
    return {name: value for name, value in (values | changes).items() if value is not None}


def run(folder, *rows, figures=""):
    path = folder / "rows.json"
    path.write_text(json.dumps({"source": "by hand", "rows": rows}), encoding="utf-8")
    return main(
        ["zero_bubble", "--cases", str(path), "--figures", figures, "--out", str(folder / "out")]
    )


def table_of(folder):
    return pd.read_csv(folder / "out" / "table.csv")


def test_bubble_rates_by_hand(tmp_path):
    assert run(tmp_path, row()) == 0

    table = table_of(tmp_path)
    assert dict(zip(table["schedule"], table["our_bubble_rate"], strict=True)) == pytest.approx(
        BY_HAND, abs=1e-12
    )
    assert table["within_bound"].all()


def test_a_latency_counts_on_every_hop(tmp_path):
    """Two microbatches under 1F1B, hops of 10 ms.

    Stage 1 has F0 at 11 ms and ends B0 at 14 and, after F1, B1 at 17. Stage 0 has them at 24 and 27
    and ends at 29 ms, of which it works for 6.
    """
    published = {"1f1b": round(1 - 6 / 29, 4)}

    changed = row(num_microbatches=2, communication_latency_ms=10.0, bubble_rate=published)
    assert run(tmp_path, changed) == 0


@pytest.mark.parametrize(("schedule", "shift"), [("1f1b", 1e-4), ("zb_2p", 0.011)])
def test_a_missed_bound_is_exit_code_1(tmp_path, capsys, schedule, shift):
    wrong = row(bubble_rate={schedule: BY_HAND[schedule] + shift, "zb_h1": 0.0769})

    assert run(tmp_path, row(), wrong) == 1
    assert f"FAILED: {schedule}, greatest difference of 2 bubble rates" in capsys.readouterr().out
    table = table_of(tmp_path)
    assert list(table.loc[~table["within_bound"], "schedule"]) == [schedule]
    assert list(table.loc[~table["within_bound"], "row"]) == [1]


def test_rows_may_lack_columns(tmp_path, capsys):
    assert run(tmp_path, row(bubble_rate={"zb_h2": 0.0}, chunks_per_device=None)) == 0

    out = capsys.readouterr().out
    assert "met: zb_h2" in out
    assert "interleaved_1f1b" not in out


def test_null_is_as_absent(tmp_path, capsys):
    """Then nothing is needed for the schedule either."""
    rates = {"zb_h2": 0.0, "interleaved_1f1b": None, "zb_2p": None}
    partly = row(bubble_rate=rates, chunks_per_device=None, weight_input_fraction=None)
    empty = row(bubble_rate={"1f1b": None})

    assert run(tmp_path, empty, partly) == 0
    assert list(table_of(tmp_path)["row"]) == [1]
    assert list(table_of(tmp_path)["schedule"]) == ["zb_h2"]
    assert "nan" not in capsys.readouterr().out


def test_the_same_rows_give_the_same_files(tmp_path):
    names = ("table.csv", "table.md", "picture.png")
    contents = []
    for _ in range(2):
        rows = (row(), row(num_microbatches=3, bubble_rate={"zb_2p": 0.1}))
        run(tmp_path, *rows, figures="png")
        contents.append([(tmp_path / "out" / name).read_bytes() for name in names])

    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bubble_rate": {"zb_v": 0.1}}, "bubble_rate must have keys of 1f1b, .*, got 'zb_v'"),
        ({"bubble_rate": {"1f1b": None}}, r"/rows\.json: rows must have a bubble_rate"),
        ({"bubble_rate": {}}, r"rows\[0\].bubble_rate"),
        ({"bubble_rate": {"1f1b": 1.0}}, r"rows\[0\].bubble_rate.1f1b"),
        ({"chunks_per_device": None}, "chunks_per_device must be given .* model 'toy' on 2 stages"),
        ({"weight_input_fraction": None}, "weight_input_fraction must be given .* model 'toy'"),
        ({"weight_input_fraction": 1.5}, r"rows\[0\].weight_input_fraction"),
        ({"num_stages": 1}, r"rows\[0\].num_stages"),
        ({"forward_ms": 0.0}, r"rows\[0\].forward_ms"),
        ({"model": None}, r"rows\[0\].model"),
    ],
)
def test_bad_rows_are_refused(tmp_path, capsys, changes, message):
    assert run(tmp_path, row(**changes)) == 2

    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert re.search(message, error)
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_exit_code_2(tmp_path, capsys):
    assert (
        main(["zero_bubble", "--cases", str(tmp_path / "none.json"), "--out", str(tmp_path)]) == 2
    )
    assert "give --cases FILE" in capsys.readouterr().err


# Where the figures of a row come from.


@pytest.mark.parametrize(
    ("model", "num_stages", "num_chunks"),
    [("1.5B", 8, 3), ("6.2B", 8, 4), ("14.6B", 16, 3), ("28.3B", 32, 2), ("28.3B", 16, 4)],
)
def test_a_chunk_is_a_layer_of_the_model(model, num_stages, num_chunks):
    of_model = row(model=model, num_stages=num_stages, chunks_per_device=None)

    assert BubbleRow(**of_model).num_chunks == num_chunks
    assert BubbleRow(**of_model, chunks_per_device=5).num_chunks == 5


def test_layers_that_do_not_divide_need_the_number_of_chunks():
    with pytest.raises(ValueError, match=r"chunks_per_device must be given .* '1.5B' on 7 stages"):
        BubbleRow(**row(model="1.5B", num_stages=7, chunks_per_device=None))


@pytest.mark.parametrize("model", MODELS)
def test_models_have_as_many_parameters_as_their_names_say(model):
    billions = float(model.removesuffix("B"))

    assert model_parameters(MODELS[model]) / 1e9 == pytest.approx(billions, rel=0.02)


@pytest.mark.parametrize(("model", "fraction"), [("1.5B", 0.3664), ("6.2B", 0.4324)])
def test_what_stays_for_the_weight_gradient_follows_from_the_model(model, fraction):
    """32 h / (34 h + 5 a s)."""
    whole, rest = BubbleRow(**row(model=model, weight_input_fraction=None)).bytes_of_layer

    assert rest / whole == pytest.approx(fraction, abs=5e-5)


@settings(max_examples=examples(30), deadline=None)
@given(
    num_devices=st.integers(2, 4),
    num_chunks=st.integers(1, 3),
    num_microbatches=st.integers(1, 8),
    passes_s=st.tuples(*[st.floats(0.1, 9.0)] * 3),
    latency_s=st.floats(0.0, 5.0),
)
def test_the_simulation_of_all_schedules_is_the_recurrence(
    num_devices, num_chunks, num_microbatches, passes_s, latency_s
):
    forward_s, input_s, weight_s = passes_s
    times = {
        "forward_s": forward_s,
        "input_gradient_s": input_s,
        "weight_gradient_s": weight_s,
        "border": Border(latency_s=latency_s),
        "num_devices": num_devices,
    }
    whole = Pipeline.uniform(num_devices, num_microbatches, **times)
    cut = Pipeline.uniform(num_devices * num_chunks, num_microbatches, **times)
    for orders, pipeline in (
        (one_f_one_b(num_devices, num_microbatches), whole),
        (zb_h1(num_devices, num_microbatches), whole),
        (zb_h2(num_devices, num_microbatches), whole),
        (automatic_zero_bubble(whole), whole),
        (interleaved_1f1b(num_devices, num_chunks, num_microbatches), cut),
    ):
        expected_s = timing_of(orders, pipeline).longest_worker_s
        assert longest_device_s(orders, pipeline) == pytest.approx(expected_s)
