"""Real PyTorch pipelines: how rows are read, what is predicted of them, and how it is judged."""

import json

import pytest

from des import Operation
from scenarios.reproduce import real_runs
from scenarios.reproduce.cases import read_form
from scenarios.reproduce.command import main
from scenarios.reproduce.real_runs_rows import (
    PASS_OVERHEAD_S,
    PAYLOAD_SHARE,
    RELAY_LATENCY_S,
    RealRunRow,
    RealRunRows,
    torch_zbv,
)

ROW = {
    "name": "two",
    "schedule": "1f1b",
    "stages_of_rank": [[0], [1]],
    "microbatches": 1,
    "forward_s": [0.1, 0.2],
    "input_gradient_s": [0.1, 0.1],
    "weight_gradient_s": [0.1, 0.2],
    "message_bytes": 1448000,
    "links": [{"ranks": [0, 1], "bits_per_s": 12000000.0, "one_way_latency_s": 0.05}],
    "early_orders": [["0F0", "0B0"], ["1F0", "1B0"]],
    "measured": {
        "early_tuned": {"median_s": 3.2, "times_s": [3.2]},
        "stock_tuned": {"median_s": 3.2},
    },
}


def row_of(**changes: object) -> RealRunRow:
    return RealRunRow.model_validate_json(json.dumps(ROW | changes))


def folder_of(path, *rows: dict[str, object]):
    (path / "pipelines.json").write_text(json.dumps(list(rows)))
    return path


def test_one_microbatch_over_a_slow_link_by_hand():
    """Two messages of 1 s and 50 ms between four passes; notices are there long before."""
    assert PAYLOAD_SHARE * 12e6 / 8 == 1448000.0
    passes_s = 0.1 + 0.2 + 0.3 + 0.2 + 4 * PASS_OVERHEAD_S
    expected_s = passes_s + 2 * (1.0 + 0.05 + RELAY_LATENCY_S)

    assert row_of().predicted_s("early_tuned") == pytest.approx(expected_s)


def test_a_receive_posted_late_exposes_its_notice():
    """B0 is posted behind F0 of rank 0, whose message is under way when the notice is sent."""
    early_s, stock_s = (row_of().predicted_s(f"{kind}_tuned") for kind in ("early", "stock"))
    notices_s = 2 * 48 / 1448000.0

    assert early_s <= stock_s <= early_s + notices_s


def test_early_stages_of_one_rank_that_follow_each_other_are_one():
    """Ranks 0, 1, 1, 0 of four stages run as three, the one in the middle twice as long."""
    orders = [["0F0", "2F0", "2I0", "0I0", "0W0", "2W0"], ["1F0", "1I0", "1W0"]]
    times = dict.fromkeys(("forward_s", "input_gradient_s", "weight_gradient_s"), [0.1] * 4)
    row = row_of(schedule="zbv", stages_of_rank=[[0, 3], [1, 2]], early_orders=orders, **times)
    found, held = row.orders("torch_early")

    assert held == ((0,), (1, 2), (3,))
    assert row.durations_s((1, 2), found[1]) == pytest.approx(
        [0.2 + PASS_OVERHEAD_S, 0.4 + PASS_OVERHEAD_S, *[0.2 + PASS_OVERHEAD_S] * 2]
    )
    assert row.durations_s((0,), found[0])[2:] == pytest.approx([0.0, 0.2 + PASS_OVERHEAD_S])
    assert row.predicted_s("early_tuned") > 0
    assert row.orders("torch_stock")[0] == torch_zbv(2, 1)


def test_the_order_of_torch_for_two_ranks():
    """`ScheduleZBVZeroBubble` of torch 2.13 over two ranks and three microbatches."""
    words = (
        "0F0 0F1 0F2 3F0 3D0 3W0 3F1 3D1 3W1 0D0 0W0 3F2 3D2 3W2 0D1 0W1 0D2 0W2",
        "1F0 2F0 1F1 2F1 2D0 2W0 1F2 1D0 1W0 2F2 2D1 2W1 1D1 2D2 1D2 1W1 2W2 1W2",
    )
    assert torch_zbv(2, 3) == tuple(
        tuple(Operation(one[1], int(one[2]), int(one[0])) for one in order.split())
        for order in words
    )


def test_runs_like_those_shipped_are_within_the_bounds_and_others_are_told():
    table = real_runs.predict_pipelines(real_runs.SHIPPED)
    found = real_runs.reproduce(table, is_shipped=True)

    assert len(table.cells) == 4 * 17
    assert all(bound.met for bound in found.bounds)
    assert sum(bound.target_met for bound in found.bounds) >= 4
    assert "Regret" in " ".join(found.notes)


def test_a_measurement_far_off_fails_its_bound(tmp_path):
    measured = {"stock_tuned": {"median_s": 30.0}}
    table = real_runs.predict_pipelines(folder_of(tmp_path, ROW | {"measured": measured}))
    found = real_runs.reproduce(table, is_shipped=False)

    assert [bound.met for bound in found.bounds] == [False, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"early_orders": [["0X0"], ["1F0"]]}, "early_orders must have passes such as 0F3"),
        ({"stages_of_rank": [[0], [0]]}, "two: stages_of_rank must name each of 2 stages once"),
        ({"schedule": "dualpipe"}, "schedule"),
    ],
)
def test_a_wrong_row_is_refused_with_its_file(tmp_path, change, message):
    with pytest.raises(ValueError, match=message) as caught:
        real_runs.predict_pipelines(folder_of(tmp_path, ROW | change))
    assert "pipelines.json" in str(caught.value)


def test_a_folder_without_pipelines_is_refused(tmp_path, capsys):
    assert main(["real_runs", "--cases", str(tmp_path)]) == 2
    assert "must be a folder with pipelines*.json" in capsys.readouterr().err
    assert len(read_form(folder_of(tmp_path, ROW) / "pipelines.json", RealRunRows).root) == 1
