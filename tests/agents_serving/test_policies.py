"""Scaling policies on small fleets: bounds, growth under high load, shrinkage under low load."""

import pytest

from agents.serving.capacity import Load, instances_needed
from agents.serving.forecast_policies import PeakHold, autoregressed
from agents.serving.load_policies import Threshold
from agents.serving.table import RULES, scaling_policy
from des.serving.fleet_engine import run
from des.serving.fleet_figures import run_figures
from des.serving.fleet_settings import Slo
from tests.fleet_cases import drawn_stream, engine, fleet_world, request

LAYOUTS = ({"mixed": 2}, {"prompt": 1, "token": 1})
HIGH = drawn_stream(3, num=400, rate_per_s=40.0)
LOW = [request(number, 15.0 * number, 20, 4) for number in range(40)]
SCALING = sorted(set(RULES) - {"static"})


@pytest.fixture(scope="module")
def high_load():
    """Runs of all policies under high load, with the attainment of each, by policy and layout."""
    found = {}
    for layout in LAYOUTS:
        world = fleet_world(HIGH, layout, slo=Slo(ttft_s=1.0, gap_s=0.5))
        for name in RULES:
            found[name, len(layout)] = run(world, scaling_policy(name))
    return found


@pytest.mark.parametrize("pools", [1, 2])
@pytest.mark.parametrize("name", SCALING)
def test_policies_grow_under_high_load_and_serve_it_sooner(high_load, name, pools):
    history, static = high_load[name, pools], high_load["static", pools]

    assert max(sum(p.ordered for p in v.pools.values()) for v, _ in history.decisions) > 2
    assert all(decision.why for _, decision in history.decisions)
    late, early = run_figures(static)["ttft_p95_s"], run_figures(history)["ttft_p95_s"]
    assert early is not None
    assert late is not None
    assert early < late


@pytest.mark.parametrize("name", sorted(set(SCALING) - {"threshold"}))
def test_policies_shrink_under_low_load(name):
    world = fleet_world(LOW, {"mixed": 6}, slo=Slo(ttft_s=1.0, gap_s=0.5), decision_interval_s=5.0)
    history = run(world, scaling_policy(name))

    last_view, _ = history.decisions[-1]
    assert last_view.pools["mixed"].ordered < 6
    assert run_figures(history)["num_unfinished"] == 0


def test_the_highest_rate_of_the_window_is_held_until_it_is_older_than_that():
    moments_s = [*(number / 200.0 for number in range(1000)), *range(15, 300, 15)]
    stream = [request(number, at_s, 100, 10) for number, at_s in enumerate(moments_s)]
    world = fleet_world(stream, {"mixed": 2}, decision_interval_s=5.0)
    history = run(world, PeakHold(window_s=100.0, margin=1.0))
    ordered = {view.now_s: view.pools["mixed"].ordered for view, _ in history.decisions}

    most = max(ordered.values())
    assert most > 2
    assert {count for now_s, count in ordered.items() if 15.0 <= now_s <= 100.0} == {most}
    assert max(count for now_s, count in ordered.items() if now_s > 115.0) < most


def test_the_oracle_needs_fewer_instances_than_a_static_fleet_as_good(high_load):
    world = fleet_world(HIGH, {"mixed": 8}, slo=Slo(ttft_s=1.0, gap_s=0.5))
    static = run_figures(run(world, scaling_policy("static")))
    oracle = run_figures(high_load["oracle", 1])

    assert oracle["gpu_h"] < static["gpu_h"]


def test_capacity_is_work_over_headroom():
    """10 requests/s of 100 prompt tokens: 10 x (0.01 + 0.01 + 5e-5) = 0.2 s a second."""
    load = Load(requests_per_s=10.0, prompt_tokens=100.0, output_tokens=1.0)
    found = instances_needed(engine(), Slo(ttft_s=1.0, gap_s=0.1), load, ("prompt", "token"))

    assert found == {"prompt": 1, "token": 1}
    tenfold = Load(requests_per_s=100.0, prompt_tokens=100.0, output_tokens=1.0)
    needed = instances_needed(engine(), Slo(ttft_s=1.0, gap_s=0.1), tenfold, ("prompt",))
    assert needed == {"prompt": 3}  # 2.005 / 0.7


def test_an_autoregression_follows_a_line_and_stays_at_a_constant():
    assert autoregressed((5.0, 5.0, 5.0)) == 5.0
    assert autoregressed((1.0, 3.0, 5.0, 7.0)) == pytest.approx(8.98)


def test_unknown_policies_and_bad_thresholds_are_refused(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'hpa'"):
        scaling_policy("hpo")
    with pytest.raises(ValueError, match="must be an intact"):
        scaling_policy("rl", tmp_path / "none.safetensors")
    for low, high in ((0.9, 0.5), (0.5, 0.5), (0.4, 1.1), (-0.1, 0.8)):
        with pytest.raises(ValueError, match="low must be below high"):
            Threshold(low=low, high=high)
    assert Threshold(low=0.0, high=1.0).high == 1.0
