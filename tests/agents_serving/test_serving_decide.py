"""``python -m agents.serving.decide``."""

import dataclasses
import json

import pytest

from agents.serving.decide import main
from des.serving.fleet_world import PoolView

POOL = {field.name: 0 for field in dataclasses.fields(PoolView)} | {"active": 2, "running": 300}
VIEW = {
    "now_s": 600.0,
    "interval_s": 10.0,
    "arrivals": 300,
    "prompt_tokens": 400_000,
    "finished": 280,
    "output_tokens": 56_000,
    "ttft_s": 0.6,
    "ttft_p95_s": 2.0,
    "gap_s": 0.03,
    "attainment": 0.7,
    "pools": {"prompt": POOL, "token": POOL},
}


def propose(tmp_path, view, *flags):
    """Run the command on a view."""
    path = tmp_path / "view.json"
    path.write_text(json.dumps(view))
    return main(["--view", str(path), *flags])


@pytest.mark.parametrize("policy", ["sla", "hpa", "predictive"])
def test_a_busy_fleet_is_told_to_grow(tmp_path, capsys, policy):
    assert propose(tmp_path, VIEW, "--policy", policy) == 0
    answer = json.loads(capsys.readouterr().out)

    assert set(answer["counts"]) == {"prompt", "token"}
    assert answer["counts"]["prompt"] > 2
    assert answer["why"]


IDLE = VIEW | dict.fromkeys(("arrivals", "prompt_tokens", "finished", "output_tokens"), 0)
IDLE |= dict.fromkeys(("ttft_s", "ttft_p95_s", "gap_s", "attainment"))
EMPTY = POOL | {"active": 7, "running": 0}


@pytest.mark.parametrize("policy", ["sla", "sla_arima"])
@pytest.mark.parametrize(("waiting", "count"), [(0, 6), (1, 7)])
def test_an_idle_fleet_shrinks_by_one_and_one_without_first_tokens_stays(
    tmp_path, capsys, policy, waiting, count
):
    pools = {"prompt": EMPTY | {"waiting": waiting}, "token": EMPTY}

    assert propose(tmp_path, IDLE | {"pools": pools}, "--policy", policy) == 0

    assert json.loads(capsys.readouterr().out)["counts"] == {"prompt": count, "token": count}


def test_keda_wakes_a_pool_from_zero_as_soon_as_requests_wait(tmp_path, capsys):
    asleep = POOL | {"active": 0, "running": 0, "waiting": 5}

    assert propose(tmp_path, IDLE | {"pools": {"mixed": asleep}}, "--policy", "keda") == 0

    assert json.loads(capsys.readouterr().out)["counts"] == {"mixed": 1}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"ttft_s": "slow"}, "ttft_s must be a finite number"),
        ({"arrivals": -1}, "arrivals must be a finite number"),
        ({"pools": {"prompt": POOL}}, "prompt and token, or mixed"),
        ({"pools": {"mixed": {}}}, "pool mixed: active"),
        ({"interval_s": 0}, "interval_s must be positive"),
    ],
)
def test_bad_views_give_one_line(tmp_path, capsys, changes, named):
    assert propose(tmp_path, VIEW | changes) == 2
    said = capsys.readouterr().err
    assert named in said
    assert said.count("\n") == 1
