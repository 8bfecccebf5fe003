"""The plan of a run as its trainer runs it, beside others, and among perfect devices."""

import json

import pytest
from small_policies import policies

from agents.answer.sections import as_text
from agents.decision.plan_document import read_document
from agents.decision.training_job import TrainingJob
from des import NO_CORRECTIONS, InfeasiblePlacementError, Placement, Plan, simulate
from des.base.jit import is_cached
from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.train.east_west import plans_ahead
from scenarios.train.east_west.config import HiPpoConfig
from scenarios.train.east_west.episodes import Case
from scenarios.train.east_west.trained_plans import drawn_plan, plan_sections, trained_plans
from scenarios.train.east_west.worlds import OWN, named_worlds

CONFIG = HiPpoConfig(model="llama2_7b", num_layers=8, microbatches=4)
PLAN = Plan(placement=Placement.parse("0*3,1*3,2*2"))


@pytest.fixture(scope="module")
def case():
    """The named world without calibrated factors."""
    world = named_worlds(CONFIG)[OWN]
    return Case(block=OWN, world=world, draw=0, draw_seed=0, corrections=NO_CORRECTIONS)


def planned(case, model="llama2_7b", num_sequences=4):
    """Bound plans of untrained policies."""
    job = TrainingJob(model=model, num_sequences=num_sequences, num_layers=8)
    return trained_plans(
        case.world, job, policies(), "megatron", corrections=NO_CORRECTIONS, perfect_s=1.5
    )


def test_every_row_takes_what_its_plan_takes_and_the_document_repeats_the_first(case):
    found = planned(case)
    bound = read_document(json.loads(json.dumps(found.document)))

    assert list(found.rows) == ["this run", "search", "uniform", "single domain"]
    for name, row in found.rows.items():
        own = row.bound
        assert simulate(own.topology, own.workload, own.plan).makespan_s == found.steps_s[name]
    assert bound == found.chosen.bound
    assert found.steps_s["search"] <= found.steps_s["single domain"]


def test_perfect_devices_have_one_line_that_says_so(case):
    lines = as_text(plan_sections(case, PLAN, planned(case))).splitlines()

    (perfect,) = [line for line in lines if "perfect devices" in line]
    assert "takes 1.5" in perfect
    assert any(line.startswith("Plan, as Megatron-LM runs it") for line in lines)


def test_without_a_trainer_the_plan_is_that_of_perfect_devices(case):
    (section,) = plan_sections(case, PLAN, None)

    assert section.notes[-1].startswith(PERFECT_DEVICES)
    assert [row[0] for row in section.rows] == ["East", "Central", "West"]
    assert drawn_plan(case, PLAN, None).first


def test_a_trainer_without_a_plan_that_fits_is_named_below_the_plan(case):
    with pytest.raises(InfeasiblePlacementError) as refused:
        planned(case, model="gpt3_175b", num_sequences=1)

    (section,) = plan_sections(case, PLAN, refused.value)
    assert section.notes[-1] == str(refused.value)


def test_the_second_process_fills_the_cache_by_which_it_is_left_out():
    plans_ahead.main()

    assert is_cached("agents.judge.proposals", "explore")
