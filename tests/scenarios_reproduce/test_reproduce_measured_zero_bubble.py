"""Measured throughput and memory of zero-bubble schedules: rules by hand, rows, refusals."""

import json

import pytest

from des.job.transformer import model_parameters
from scenarios.reproduce.command import main
from scenarios.reproduce.measured import SHIPPED, predict_folder
from scenarios.reproduce.measured_zero_bubble import MEMORY, THROUGHPUT, PredictedSetting, Rules
from scenarios.reproduce.measured_zero_bubble_rows import ThroughputRow, read_throughputs
from scenarios.reproduce.measured_zero_bubble_stages import MeasuredStages

FILE = SHIPPED / "zb_throughput.json"
ROWS, SETUP = read_throughputs(FILE, FILE)
PROFILE_ALONE = Rules(waits=False, step=False, ends=False)


def small(**changes: object) -> ThroughputRow:
    """Four stages of two layers, F, D and W of 2 ms each, messages that take no time."""
    fields: dict[str, object] = {
        "model": "small",
        "num_layers": 6,
        "num_heads": 8,
        "hidden_size": 1024,
        "sequence_length": 1024,
        "num_stages": 4,
        "num_microbatches": 8,
        "microbatch_size": 2,
        "forward_ms": 2.0,
        "backward_input_ms": 2.0,
        "backward_weight_ms": 2.0,
        "communication_latency_ms": 0.0,
        "measured_samples_per_gpu_per_second": {"1f1b": 60.0, "interleaved_1f1b": 70.0},
    }
    return ThroughputRow.model_validate(fields | changes)


def setting(row: ThroughputRow, schedule: str, rules: Rules = PROFILE_ALONE) -> PredictedSetting:
    return PredictedSetting(row=row, setup=SETUP, schedule=schedule, rules=rules)


# Rules.


@pytest.mark.parametrize(
    ("schedule", "expected_s"),
    [("1f1b", 11 * 6e-3), ("interleaved_1f1b", (8 + 3 / 2) * 6e-3), ("zb_2p", 8 * 6e-3)],
)
def test_profiled_times_alone_give_the_closed_forms(schedule, expected_s):
    """(m + p - 1), (m + (p - 1) / V) and m times F + D + W: ZB-2p has no bubble."""
    found = setting(small(), schedule)

    assert found.iteration_s == pytest.approx(expected_s)
    assert found.samples_per_gpu_s == pytest.approx(16 / 4 / expected_s)


@pytest.mark.parametrize("num_chunks", [1, 2])
def test_profiled_times_are_those_of_the_average_stage(num_chunks):
    stages = MeasuredStages(row=small(), setup=SETUP)
    for times_s, profiled_s in zip(stages.passes_s(num_chunks), small().profile_s, strict=True):
        assert sum(times_s) == pytest.approx(4 * profiled_s)
    layer_s = stages.passes_s(2)[0][1]
    assert stages.passes_s()[0][1] == pytest.approx(2 * layer_s)
    assert stages.passes_s(2)[0][0] < 0.1 * layer_s  # vectors are looked up


def test_senders_that_wait_add_a_latency_each_way_by_hand():
    """Two stages, one microbatch: F, message, F, B, message, B; the first waits either way."""
    row = small(num_layers=2, num_stages=2, num_microbatches=1, communication_latency_ms=1.0,
                measured_samples_per_gpu_per_second={"1f1b": 1.0})  # fmt: skip
    waits = Rules(step=False, ends=False)

    assert setting(row, "1f1b", waits).iteration_s == pytest.approx(14e-3)
    two = row.model_copy(update={"num_microbatches": 2})
    # stage 0: F 0-2, F 3-5, B 10-14, B 17-21; stage 1: F 3-5, B 5-9, F 10-12, B 12-16
    assert setting(two, "1f1b", waits).iteration_s == pytest.approx(21e-3)
    # stage 0: F 0-2, F 2-4, B 10-14, B 16-20; stage 1: F 3-5, B 5-9, F 9-11, B 11-15
    assert setting(two, "1f1b").iteration_s == pytest.approx(20e-3)


def test_the_step_follows_the_fullest_device_and_the_exchange_of_the_table():
    row, found = ROWS[0], MeasuredStages(row=ROWS[0], setup=SETUP)
    apart = MeasuredStages(row=row, setup=SETUP.model_copy(update={"gpus_per_node": 4}))
    table_bytes = 4 * SETUP.vocabulary_size * row.hidden_size

    # across nodes a sum of two takes as long as the table over one card
    expected_s = table_bytes * (1 / 25e9 - 1 / 300e9)
    assert apart.after_step_s - found.after_step_s == pytest.approx(expected_s)
    layers = 3 * (12 * row.hidden_size**2 + 13 * row.hidden_size)
    assert found.parameters[1] == pytest.approx(layers)


def test_memory_is_state_and_activations_of_the_fullest_device_by_hand():
    """1F1B on four stages of two layers: device 1 holds three microbatches of two layers."""
    row = small()
    found, stages = setting(row, "1f1b"), MeasuredStages(row=row, setup=SETUP)
    kept, _ = stages.layer_bytes
    held = [4 * 1, 3 * 2, 2 * 2, 1 * 1]

    expected = max(
        18 * parameters + layers * kept
        for parameters, layers in zip(stages.parameters, held, strict=True)
    )
    assert found.peak_gib == pytest.approx(expected / 2**30)


def test_names_of_the_models_leave_a_vocabulary_of_32_000():
    """Sizes in billions to one decimal; with the 50,257 tokens of GPT-2 one is another."""
    for row in ROWS:
        size = model_parameters(row.architecture(SETUP.vocabulary_size)) / 1e9
        assert f"{size:.1f}B" == row.model
    assert f"{model_parameters(ROWS[-1].architecture(50_257)) / 1e9:.1f}B" != ROWS[-1].model


# The table.


def test_files_without_setup_take_the_shipped_one_and_are_judged(tmp_path, capsys):
    """The first shipped row: within 4 % over its schedules, and peaks within 11 %."""
    rows = json.loads(FILE.read_text())["rows"][:1]
    (tmp_path / "zb_throughput_b.json").write_text(json.dumps({"source": "a test", "rows": rows}))

    assert main(["measured", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "met: mean absolute error [%] of 4 throughputs of zb_throughput_b" in printed
    assert "first and last stage differ" in printed
    (table,) = predict_folder(tmp_path)
    errors = {
        quantity: [abs(one.error_percent) for one in table.cells if one.quantity == quantity]
        for quantity in (THROUGHPUT, MEMORY)
    }
    assert max(errors[THROUGHPUT]) < 4.0
    assert max(errors[MEMORY]) < 11.0


def test_shipped_rows_are_all_there():
    assert [(row.model, row.num_microbatches) for row in ROWS] == [
        (model, count) for model, counts in (("1.5B", (24, 32, 64)), ("14.6B", (48, 64, 128)))
        for count in counts
    ]  # fmt: skip
    assert all(len(row.throughput) == len(row.memory_gib) == 4 for row in ROWS)


# Refusals.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_layers": 7}, r"num_layers must be 2 less than a multiple of num_stages, 4; got 7"),
        ({"num_layers": 2}, r"must leave several layers a stage where interleaved_1f1b .* got 2"),
        ({"num_heads": 7}, r"hidden_size must be a multiple of num_heads, 7; got 1024"),
        ({"measured_memory_gb_per_gpu": {"gpipe": 1.0}}, r"must have keys of 1f1b, .* got 'gpipe'"),
        ({"forward_ms": -1.0}, "forward_ms"),
    ],
)
def test_a_row_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small(**changes)


def test_an_unseen_file_that_is_wrong_is_named(tmp_path, capsys):
    row = json.loads(FILE.read_text())["rows"][0] | {"num_stages": 7}
    (tmp_path / "zb_throughput_b.json").write_text(json.dumps({"source": "", "rows": [row]}))

    assert main(["measured", "--cases", str(tmp_path)]) == 2
    assert "multiple of num_stages, 7; got 22" in capsys.readouterr().err
