"""Situations and decisions of schedulers: values that refuse what makes no sense."""

from dataclasses import replace

import numpy as np
import pytest

from agents.decision.levels import LEVELS, level_of
from agents.decision.problem import PlanningProblem
from agents.decision.situation import Preference, Situation
from agents.replanning.levels import levels_between
from des import (
    DiLoCo,
    Movement,
    OrnsteinUhlenbeck,
    Placement,
    Plan,
    PlaneWorlds,
    build_workload,
    read_topology,
)
from des.plan.replacement import Replacement
from des.world.domain_load import DomainLoad

WORLD = read_topology("east_central_west")


def copies(*texts: str) -> Plan:
    """Copies of the model in these placements."""
    first, *others = map(Placement.parse, texts)
    return Plan(placement=first, replicas=tuple(others))


def situation(**changes: object) -> Situation:
    """The first decision on the shipped world."""
    given = Situation(
        topology=replace(WORLD, movement=None),
        base=WORLD,
        workload=build_workload("llama2_7b"),
        epoch=0,
        epoch_s=300.0,
        replacement=Replacement(),
    )
    return replace(given, **changes)


@pytest.mark.parametrize(
    ("text", "schedule", "level"),
    [
        ("0*20,1*12", "1f1b", "nothing"),
        ("0*20,1*12", "gpipe", "depth"),
        ("0*19,1*13", "1f1b", "split"),
        ("0*19,1*13", "gpipe", "split"),
        ("1*12,0*20", "1f1b", "order"),
        ("0*32", "1f1b", "order"),
    ],
)
def test_a_plan_departs_from_the_last_one_by_as_much_as_its_largest_change(text, schedule, level):
    last = Plan(placement=Placement.parse("0*20,1*12"))

    assert level_of(last, Plan(placement=Placement.parse(text), schedule=schedule)) == level


COPIES = copies("0*20,1*12", "2*32")


@pytest.mark.parametrize(
    ("plan", "level"),
    [
        (replace(COPIES, schedule="gpipe"), "depth"),
        (replace(COPIES, activation_compression=2.0), "depth"),
        (replace(COPIES, shares=(5, 3)), "split"),
        (copies("0*19,1*13", "2*32"), "split"),
        (copies("1*12,0*20", "2*32"), "order"),
        (copies("2*32", "0*20,1*12"), "order"),  # the ring begins elsewhere
        (copies("0*20,2*12", "1*32"), "groups"),
        (copies("0*20,1*12", "2*32", "3*32"), "groups"),
        (copies("0*32", "2*32"), "family"),  # whole copies instead of pipelines
        (replace(COPIES, synchronisation=DiLoCo()), "family"),
        (Plan(placement=COPIES.placement), "family"),
    ],
)
def test_copies_of_the_model_depart_by_as_much_as_their_largest_change(plan, level):
    assert level_of(COPIES, plan) == level_of(plan, COPIES) == level
    assert LEVELS[levels_between([COPIES], [plan])[0, 0]] == level


def test_the_first_plan_is_a_new_order():
    assert level_of(None, Plan(placement=Placement.parse("0*32"))) == "order"


def test_a_network_that_moves_is_no_situation():
    law = OrnsteinUhlenbeck(bandwidth_sigma=0.1, relaxation_s=60.0, interval_s=1.0)
    moving = replace(WORLD, movement=Movement(law=law, seed=0))
    with pytest.raises(ValueError, match="topology must stand still"):
        situation(topology=moving)


def test_loads_are_given_for_all_domains_or_none():
    assert situation(loads=(DomainLoad(),) * 3).loads[2].utilisation == 0.0
    with pytest.raises(ValueError, match="loads must hold one for each of 3 domains, got 2"):
        situation(loads=(DomainLoad(),) * 2)


@pytest.mark.parametrize("field", ["utilisation", "memory_occupancy"])
@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan")])
def test_shares_of_a_domain_lie_below_one(field, value):
    with pytest.raises(ValueError, match=f"domain load: {field} must be within"):
        DomainLoad(**{field: value})


@pytest.mark.parametrize("length", [-1.0, float("nan"), float("inf")])
def test_a_queue_has_a_finite_length(length):
    with pytest.raises(ValueError, match="domain load: queue_length"):
        DomainLoad(queue_length=length)


def test_weights_of_a_preference_add_up_to_one():
    assert Preference(time=0.25, utilisation=0.25, communication=0.5).communication == 0.5
    with pytest.raises(ValueError, match="weights must add up to 1"):
        Preference(time=0.5)
    with pytest.raises(ValueError, match="preference: time must"):
        Preference(time=float("nan"))


def test_more_domains_than_plans_are_searched_for_are_refused():
    wide = PlaneWorlds(num_domains=129).draw(np.random.default_rng(0))
    message = "planning problem: topology must have at most 128 domains to plan for, got 129"

    with pytest.raises(ValueError, match=message):
        PlanningProblem(topology=wide, workload=build_workload("llama2_7b"))
