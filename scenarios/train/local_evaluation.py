"""Gaps of the local agent and of simple methods to the best plans, and times of its decisions."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
import pandas as pd

from agents.hi_ppo.local.bound_plans import LocalPlan, exhaustive, quickly_bound
from agents.hi_ppo.local.case import LocalCase
from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.local.draws import draw_case, draw_servers_case
from agents.hi_ppo.local.options import Options, options_of
from agents.hi_ppo.local.rules import (
    best_scored,
    largest_tensor,
    largest_tensor_bound,
    least_estimate,
    random_options,
    smallest_tensor_bound,
)
from agents.hi_ppo.local.training_policy import LocalPolicy

_Draw = Callable[[np.random.Generator], LocalCase]
_Method = Callable[[LocalCase, Options], LocalPlan]

KINDS: Mapping[str, _Draw] = MappingProxyType(
    {"one_server": draw_case, "several_servers": draw_servers_case}
)
"""Kinds of domains, and how one of them is drawn."""

_WARM_UP = 32


def hold_out_cases(kind: str, count: int) -> list[LocalCase]:
    """Cases held out from training: of a random stream of their own, the same for all seeds."""
    rng = np.random.default_rng([2**40, 1])
    return [KINDS[kind](rng) for _ in range(count)]


def time_decisions(agent: LocalAgent, count: int) -> pd.DataFrame:
    """One row per decision: ``kind`` of domain, ``case``, wall time and CPU times, without waits.

    ``all_bound_cpu_s`` is the CPU time in which all options are bound instead. The first few of a
    kind warm the process up and do not count. No case has been used before.
    """
    rows = []
    for kind in KINDS:
        for case in hold_out_cases(kind, min(_WARM_UP, count)):
            agent.decide(case)
            _all_bound(case, options_of(case))
        both = zip(hold_out_cases(kind, count), hold_out_cases(kind, count), strict=True)
        for number, (case, again) in enumerate(both):
            start_s = time.process_time()
            response_s = agent.decide(case).response_s
            cpu_s = time.process_time() - start_s
            start_s = time.process_time()
            _all_bound(again, options_of(again))
            rows.append(
                {
                    "kind": kind,
                    "case": number,
                    "response_s": response_s,
                    "cpu_s": cpu_s,
                    "all_bound_cpu_s": time.process_time() - start_s,
                }
            )
    return pd.DataFrame(rows)


def evaluate_local(agent: LocalAgent, count: int) -> pd.DataFrame:
    """One row per kind of domain, held-out case and method.

    ``gap`` is what the plan takes more than the best one, as a part of that.
    """
    rows = []
    for kind in KINDS:
        for number, case in enumerate(hold_out_cases(kind, count)):
            options = options_of(case)
            best = exhaustive(case, options)
            methods = _methods(agent, np.random.default_rng([2**40, 2, number]))
            plans = {name: method(case, options) for name, method in methods.items()}
            rows += [
                {
                    "kind": kind,
                    "case": number,
                    "method": name,
                    "seconds_per_sequence": plan.seconds_per_sequence,
                    "gap": plan.seconds_per_sequence / best.seconds_per_sequence - 1.0,
                    "plan": str(plan.option),
                    "binding": " ".join(map(str, plan.binding)),
                }
                for name, plan in ({"exhaustive": best} | plans).items()
            ]
    return pd.DataFrame(rows)


def _methods(agent: LocalAgent, rng: np.random.Generator) -> dict[str, _Method]:
    """Methods by name; where a number is missing they bind as many options as the agent does."""
    count, policy = agent.num_proposals, agent.policy
    untrained = LocalPolicy.untrained(policy, 0)
    drawn = replace(agent, policy=untrained)
    return {
        "agent": partial(_plan_of, agent),
        "agent, untrained": partial(_plan_of, drawn),
        "least estimate": partial(least_estimate, num_proposals=count),
        "least estimate, half": partial(least_estimate, num_proposals=-(-count // 2)),
        "policy alone": partial(best_scored, policy=policy, num_proposals=count),
        "policy alone, untrained": partial(best_scored, policy=untrained, num_proposals=count),
        "random": partial(random_options, rng=rng, num_proposals=count),
        "agent, one proposal": partial(best_scored, policy=policy),
        "agent, untrained, one proposal": partial(best_scored, policy=untrained),
        "random, one proposal": partial(random_options, rng=rng),
        "least estimate, one proposal": least_estimate,
        "all options, bound": _all_bound,
        "largest tensor": largest_tensor,
        "largest tensor, bound": largest_tensor_bound,
        "smallest tensor, bound": smallest_tensor_bound,
    }


def _all_bound(case: LocalCase, options: Options) -> LocalPlan:
    return quickly_bound(case, options, range(len(options)))


def _plan_of(agent: LocalAgent, case: LocalCase, _options: Options) -> LocalPlan:
    return agent.decide(case).plan


def summarise_local(
    evaluation: pd.DataFrame, timings: pd.DataFrame
) -> dict[str, dict[str, object]]:
    """Mean, 95th percentile and worst of the gaps by method, and of the response times. [s]

    By kind of domain.
    """
    return {
        kind: _summary(evaluation[evaluation["kind"] == kind], timings[timings["kind"] == kind])
        for kind in KINDS
    }


def _summary(evaluation: pd.DataFrame, timings: pd.DataFrame) -> dict[str, object]:
    gaps = {
        str(method): {
            "mean_gap": float(rows["gap"].mean()),
            "p95_gap": float(rows["gap"].quantile(0.95)),
            "worst_gap": float(rows["gap"].max()),
        }
        for method, rows in evaluation.groupby("method", sort=False)
    }
    figures = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        "num_cases": len(timings),
        "gaps": gaps,
        **{
            f"{clock}_{name}_s": float(timings[f"{clock}_s"].quantile(share))
            for clock in ("response", "cpu", "all_bound_cpu")
            for name, share in figures.items()
        },
    }
