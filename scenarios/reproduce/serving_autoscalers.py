"""Cases of autoscalers: sequences of decisions, and single facts of their own tests."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.serving import hpa, hpa_metrics, keda, sla_planner
from agents.serving.hpa import Direction, HpaMemory, HpaRules, RatePolicy, hpa_step
from agents.serving.hpa_metrics import by_average_value, by_value
from agents.serving.keda import KedaMemory, KedaRules, keda_step
from agents.serving.sla_planner import PlannerFactors, PlannerInterval, PlannerProfile, sla_step

Case = Mapping[str, Any]
Answer = dict[str, Any]


def _taken(case: Case, *names: str) -> dict[str, Any]:
    return {name: case[name] for name in names}


def _direction(form: Case) -> Direction:
    return Direction(
        window_s=form.get("window_s", 0),
        select=form.get("select", "Max"),
        policies=tuple(
            RatePolicy(kind=each["type"], value=each["value"], period_s=each["period_s"])
            for each in form["policies"]
        ),
    )


def _behaviour(form: Case | None) -> dict[str, Any]:
    if form is None:
        return {"up": None, "down": None}
    return {"up": _direction(form["up"]), "down": _direction(form["down"])}


def _hpa(case: Case) -> Answer:
    bounds = _taken(case, "min_replicas", "max_replicas", "tolerance")
    rules = HpaRules(**bounds, **_behaviour(case["behavior"]))
    current: int = case["initial_replicas"]
    memory: HpaMemory | None = None
    answer: Answer = {"replicas": [], "recommendation": [], "reason": []}
    for tick, now_s in enumerate(case["time_s"]):
        proposals = [_proposal(metric, case, tick, current) for metric in case["metrics"]]
        decision, memory = hpa_step(rules, memory, now_s, current, proposals)
        current = decision.replicas
        answer["replicas"].append(current)
        answer["recommendation"].append(decision.recommendation)
        answer["reason"].append(decision.reason)
    return answer


def _proposal(metric: Case, case: Case, tick: int, current: int) -> int | None:
    value, target = metric["values"][tick], metric["target"]
    if value is None:
        return None
    if metric["kind"] == "average_value":
        return by_average_value(value, target, current, case["tolerance"])
    readies = case["ready_replicas"]
    ready = readies[tick] if tick < len(readies) else None
    return by_value(value, target, current, current if ready is None else ready, case["tolerance"])


def _keda(case: Case) -> Answer:
    names = (
        "threshold",
        "activation_threshold",
        "min_replicas",
        "max_replicas",
        "idle_replicas",
        "cooldown_s",
        "polling_interval_s",
        "hpa_interval_s",
    )
    rules = KedaRules(**_taken(case, *names), **_behaviour(case["behavior"]))
    current: int = case["initial_replicas"]
    memory = KedaMemory()
    answer: Answer = {"replicas": [], "acted": []}
    for now_s, value in zip(case["time_s"], case["value"], strict=True):
        current, memory, acted = keda_step(rules, memory, now_s, current, value)
        answer["replicas"].append(current)
        answer["acted"].append(acted)
    return answer


def _sla_planner(case: Case) -> Answer:
    gpus, times = ("prefill_gpus", "decode_gpus"), ("ttft_ms", "itl_ms")
    settings = _taken(case, "interval_s", *gpus, *times, "min_replicas", "gpu_budget")
    rules = sla_planner.PlannerRules(**settings, corrects=case["correct"])
    profile = planner_profile(case["profile_tables"])
    factors = PlannerFactors()
    answer: Answer = {
        name: [] for name in ("prefill", "decode", "prefill_correction", "decode_correction")
    }
    for place, requests in enumerate(case["requests"]):
        seen = PlannerInterval(
            requests=requests,
            isl=case["isl"][place],
            osl=case["osl"][place],
            ttft_ms=case["observed_ttft_ms"][place],
            itl_ms=case["observed_itl_ms"][place],
            request_duration_s=case["request_duration_s"][place],
            decode_workers=case["decode_workers"][place],
        )
        counts, factors = sla_step(rules, profile, factors, seen)
        figures = (*(counts or (None, None)), factors.prefill, factors.decode)
        for column, figure in zip(answer.values(), figures, strict=True):
            column.append(figure)
    return answer


def planner_profile(tables: Case) -> PlannerProfile:
    """Make a profile of the tables of a case."""
    prefill, decode = tables["prefill"], tables["decode"]
    return PlannerProfile(
        isl=tuple(prefill["isl"]),
        ttft_ms=tuple(prefill["ttft_ms"]),
        prefill_tokens_per_s_per_gpu=tuple(prefill["tokens_per_s_per_gpu"]),
        kv_shares=tuple(decode["kv_usage_grid"]),
        contexts=tuple(decode["context_grid"]),
        itl_ms=tuple(map(tuple, decode["itl_ms"])),
        decode_tokens_per_s_per_gpu=tuple(map(tuple, decode["tokens_per_s_per_gpu"])),
        max_kv_tokens=decode["max_kv_tokens"],
    )


def _replica_fact(fact: Case) -> int:
    current, tolerance = fact["current_replicas"], fact["tolerance"]
    if fact["kind"] == "average_value":
        return by_average_value(fact["total"], fact["target"], current, tolerance)
    if fact["kind"] == "value":
        ready = fact["ready_replicas"]
        return by_value(fact["total"], fact["target"], current, ready, tolerance)
    pods = [
        hpa_metrics.Pod(state=each["state"], usage=each.get("usage"), request=each.get("request"))
        for each in fact["pods"]
    ]
    if fact["kind"] == "pods":
        return hpa_metrics.by_pods(pods, fact["target"], current, tolerance)
    return hpa_metrics.by_utilisation(pods, fact["target_percent"], current, tolerance)


def _past(events: Sequence[Sequence[float]], sign: int = 1) -> list[tuple[float, int]]:
    """Events of a fact, given as seconds before time 0."""
    return [(-seconds_ago, sign * int(size)) for seconds_ago, size in events]


def _rate_fact(fact: Case) -> Answer:
    rules = HpaRules(**_taken(fact, "min_replicas", "max_replicas"), **_behaviour(fact))
    changes = [*_past(fact["scale_up_events"]), *_past(fact["scale_down_events"], sign=-1)]
    replicas, reason = hpa.limited(
        rules, changes, 0.0, fact["current_replicas"], fact["recommended"]
    )
    return {"replicas": replicas, "reason": reason}


def _stabilise_fact(fact: Case) -> int:
    windows = (fact["up_window_s"], fact["down_window_s"])
    past = _past(fact["recommendations"])
    return hpa.stabilised(fact["current_replicas"], fact["recommended"], 0.0, past, windows)


def _old_stabilise_fact(fact: Case) -> int:
    past = _past(fact["recommendations"])
    return hpa.stabilised_old(fact["recommended"], 0.0, past, fact["window_s"])


def _old_limit_fact(fact: Case) -> Answer:
    rules = HpaRules(**_taken(fact, "min_replicas", "max_replicas"), up=None, down=None)
    replicas, reason = hpa.limited_old(rules, fact["current_replicas"], fact["recommended"])
    return {"replicas": replicas, "reason": reason}


def _keda_fact(fact: Case) -> int:
    names = (
        "min_replicas",
        "idle_replicas",
        "pause_scale_in",
        "pause_scale_out",
        "force_activation",
    )
    rules = KedaRules(threshold=1.0, **_taken(fact, *names))
    ago = fact["last_active_s_ago"]
    replicas, _ = keda.executor_step(
        rules,
        None if ago is None else -ago,
        0.0,
        fact["current_replicas"],
        is_active=fact["active"],
    )
    return replicas


_SEQUENCES: Mapping[str, Callable[[Case], Answer]] = {
    "hpa": _hpa,
    "keda": _keda,
    "sla_planner": _sla_planner,
}
_FACTS: Mapping[str, Callable[[Case], Any]] = {
    "fact_replica_calculator": _replica_fact,
    "fact_rate_limit": _rate_fact,
    "fact_stabilise": _stabilise_fact,
    "fact_stabilise_without_behaviour": _old_stabilise_fact,
    "fact_limit_without_behaviour": _old_limit_fact,
    "fact_keda_executor": _keda_fact,
}


def autoscaler_answer(case: Case) -> Answer:
    """Decide a sequence, or each fact of a table.

    Raises
    ------
    ValueError
        If the case names no policy that is known.
    """
    policy = str(case.get("policy"))
    if policy in _SEQUENCES:
        return _SEQUENCES[policy](case)
    if policy in _FACTS:
        return {"answers": [_FACTS[policy](fact) for fact in case["cases"]]}
    known = ", ".join([*_SEQUENCES, *_FACTS])
    raise ValueError(f"case: policy must be one of {known}, got {policy!r}")
