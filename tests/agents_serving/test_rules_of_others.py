"""Kubernetes' HPA, KEDA and the SLA planner: bounds, bad input, and what their memory forgets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.serving.hpa import DEFAULT_UP, Direction, HpaRules, RatePolicy, hpa_step
from agents.serving.hpa_metrics import Pod, by_average_value, by_utilisation
from agents.serving.keda import KedaMemory, KedaRules, keda_step
from agents.serving.sla_planner import PlannerRules, within_budget

RULES = HpaRules(min_replicas=2, max_replicas=30)


@settings(max_examples=40)
@given(loads=st.lists(st.integers(0, 400), min_size=1, max_size=60))
def test_replicas_stay_within_bounds_and_rates(loads):
    """At most 4 more or twice as many a tick; fewer only when 300 s have not wanted more."""
    current, memory = 2, None
    wanted: list[int] = [2]
    for tick, load in enumerate(loads):
        before = current
        proposal = by_average_value(load, 10, current, RULES.tolerance)
        decision, memory = hpa_step(RULES, memory, 15.0 * tick, current, [proposal])
        current = decision.replicas
        wanted.append(proposal)

        assert 2 <= current <= 30
        assert current <= max(before + 4, 2 * before)
        assert current >= min(before, max(wanted[-20:]))


def test_a_missing_metric_never_scales_down():
    decision, _ = hpa_step(RULES, None, 0.0, 10, [None, 5])
    assert (decision.replicas, decision.reason) == (10, "InvalidMetrics")
    decision, _ = hpa_step(RULES, None, 0.0, 10, [None, 12])
    assert decision.replicas == 12


def test_pods_without_a_metric_make_a_change_smaller():
    """Use is 50 of 100 against 25 %: 2 pods become 4, with one missing pod counted as 0 only 3."""
    ready = [Pod(state="ready", usage=50.0, request=100.0)] * 2
    missing = Pod(state="missing", usage=None, request=100.0)

    assert by_utilisation(ready, 25, 2, 0.1) == 4
    assert by_utilisation([*ready, missing], 25, 3, 0.1) == 4
    with pytest.raises(ValueError, match="at least 1 that is ready"):
        by_utilisation([missing], 25, 3, 0.1)


def test_keda_wakes_at_a_poll_and_sleeps_after_the_cooldown():
    rules = KedaRules(threshold=10.0, cooldown_s=60.0)
    current, memory = 0, KedaMemory()
    counts = []
    for now_s, value in [(15, 5), (30, 5), (60, 0), (90, 0), (120, 0)]:
        current, memory, _ = keda_step(rules, memory, now_s, current, value)
        counts.append(current)

    assert counts == [0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: HpaRules(min_replicas=3, max_replicas=2), "min_replicas"),
        (lambda: HpaRules(min_replicas=1, max_replicas=2, up=None), "both"),
        (lambda: RatePolicy(kind="Nodes", value=1, period_s=1), "Pods or Percent"),
        (lambda: Direction(window_s=-1, policies=DEFAULT_UP.policies), "window_s"),
        (lambda: KedaRules(threshold=0.0), "threshold"),
        (lambda: KedaRules(threshold=1.0, min_replicas=1, idle_replicas=1), "idle_replicas"),
        (lambda: Pod(state="gone", usage=1.0), "state"),
    ],
)
def test_bad_rules_are_refused(make, named):
    with pytest.raises(ValueError, match=named):
        make()


@given(prefill=st.integers(0, 50), decode=st.integers(0, 50), budget=st.integers(4, 100))
def test_a_budget_is_passed_only_by_the_smallest_counts(prefill, decode, budget):
    rules = PlannerRules(
        interval_s=60.0,
        prefill_gpus=1,
        decode_gpus=1,
        ttft_ms=500.0,
        itl_ms=50.0,
        min_replicas=2,
        gpu_budget=budget,
    )
    found = within_budget(rules, prefill, decode)

    assert min(found) >= 2
    assert sum(found) <= max(budget, 4) or 2 in found
