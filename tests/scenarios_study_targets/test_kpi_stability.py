"""Shares of stable epochs, of a scheduler and of the same one with a bound."""

import math
from dataclasses import replace

import pytest

from agents.decision.run_epochs import run_course
from agents.replanning.table import SCHEDULERS
from scenarios.study.targets.measurement_size import SchedulerColumn, Scope, on_still_links
from scenarios.study.targets.sizes import SHORT
from scenarios.study.targets.stability import _price_line, measure


def column(**changes: object) -> SchedulerColumn:
    """A world of each suite, 4 epochs each."""
    sizes = replace(SHORT, num_worlds=1, num_epochs=4, num_load_epochs=8)
    given = {"name": "held", "make": SCHEDULERS["search_once"], "scope": Scope(sizes=sizes)}
    return SchedulerColumn(**{**given, **changes})


def test_who_plans_anew_in_every_epoch_is_always_stable_and_who_holds_takes_what_he_takes():
    """The bounded one here is the reference itself, and the other one the plan held."""
    held, bounded = measure(column(make_bounded=SCHEDULERS["search_greedy"]))

    assert [held.name, bounded.name] == ["stable at load +-20 %", "stable at load +-20 %, bounded"]
    assert held.value < 1.0
    assert bounded.value == 1.0
    assert (held.verdict, bounded.verdict) == ("inconclusive", "exceeded")  # two draws
    assert held.notes[0] == bounded.notes[0] == "8 epochs of 2 draws"
    assert bounded.notes[1:3] == ("eval_calm: 100.00 % stable", "eval_held: 100.00 % stable")
    total = held.notes[-1]
    assert total.startswith("total time: +0.00 % against the base plan held, ")
    assert bounded.notes[-1] == f"without bound: {total}"
    assert [note.split(" % of")[0] for note in bounded.notes[-3:-1]] == price_of_search()
    shares = [float(note.split()[1]) for note in held.notes[1:3]]
    assert sum(shares) / 200.0 == pytest.approx(held.value, abs=1e-4)


def price_of_search() -> list[str]:
    """Notes of each suite, from the totals of plans held and plans of every epoch."""
    scope, found = column().scope, []
    for suite in ("eval_calm", "eval_held"):
        (world,) = map(on_still_links, scope.worlds(suite))
        totals_s = [
            run_course(world, 0, SCHEDULERS[name](), num_epochs=4, must_fit=False).total_s
            for name in ("search_greedy", "search_once")
        ]
        excess = 100.0 * (totals_s[0] / totals_s[1] - 1.0)
        found.append(f"{suite}: the bound costs {excess:+.2f}")
    return found


def test_a_planner_has_no_bound():
    _, bounded = measure(column())

    assert math.isnan(bounded.value)
    assert bounded.verdict == "not measured"
    assert bounded.notes == ("not measured: only trained policies have a bound on iteration times",)


@pytest.mark.parametrize(
    ("prices", "line"),
    [
        ([1.0, 3.0], "calm: the bound costs +2.00 % of the time ± 12.71"),
        ([4.0], "calm: the bound costs +4.00 % of the time"),
        ([4.0, math.inf], "calm: the bound costs +4.00 % of the time; no work is done in 1 of 2"),
        ([math.inf], "calm: no work is done within the bound"),
    ],
)
def test_worlds_in_which_a_bound_lets_no_work_be_done_are_told_apart(prices, line):
    assert _price_line("calm", prices) == line
