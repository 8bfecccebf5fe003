"""Answers with a bound plan: the page, its document, plans in force, and what does not fit."""

import json
from dataclasses import replace

import pytest
from bound_cases import site, sites

from agents.answer.bound_answer import answer_bound
from agents.decide import decide
from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import read_document
from agents.decision.training_job import TrainingJob
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.trainers.table import TRAINERS, trainer_named
from des import DecoupledDiLoCo, Domain, InfeasiblePlacementError, Placement, Topology, simulate
from des.plan.replacement import Replacement

JOB = TrainingJob(model="llama2_7b", num_sequences=16)
TWO = sites(site("A"), site("B"))
BINDING = [name for name, trainer in TRAINERS.items() if not trainer.is_ideal]


def priced(*domains: Domain) -> Topology:
    """Sites whose GPUs cost 3.6 USD an hour, and 0.01 USD a GB between them."""
    world = sites(*(replace(one, gpu_price_usd_per_hour=3.6) for one in domains))
    return replace(world, links=tuple(replace(one, price_usd_per_gb=0.01) for one in world.links))


def alone(world, objective="time", limit=None):
    """An answer of Megatron-LM without what would change it."""
    request = PlanRequest(topology=world, job=JOB, trainer=trainer_named("megatron"))
    return answer_bound(request, PlanObjective.parse(objective, limit), is_alone=True)


@pytest.fixture(scope="module")
def answers():
    """An answer of each trainer."""
    return {name: decide(TWO, JOB, trainer=name) for name in BINDING}


@pytest.fixture(scope="module")
def small():
    """A site of one GPU with 160 GB, which holds the 121 GB of the model's state."""
    only = replace(site("A", 1, None), gpu_memory_bytes=160e9)
    return decide(sites(only), TrainingJob(model="llama2_7b", num_sequences=4))


def test_a_job_for_one_gpu_runs_there_as_reckoned_by_hand(small):
    """16,384 tokens at half of 1e15 FLOP/s, nothing sent."""
    (row, *_) = small.rows
    flops = row.bound.workload.flops_per_iteration
    text = str(small)

    assert row.bound.plan.placement == Placement.parse("0*32")
    assert row.figures.wan_bytes == 0.0
    assert row.figures.utilisation == pytest.approx(flops / (1e15 * small.step_s))
    assert small.step_s == pytest.approx(flops / 0.5e15)
    assert row.bound.gpus_of(0, 0) == ("0/0",)
    assert text.startswith("Answer: single domain\n  ")
    assert "\n  A     0/0-0/0          1 x 1       1    0-31             32 " in text
    assert "servers of A are not given: each counts as one server of all its GPUs" in text


def test_a_page_of_learners_says_how_they_merge_and_that_their_price_is_given():
    request = PlanRequest(
        topology=TWO,
        job=JOB,
        trainer=trainer_named("reference"),
        families=("decoupled_diloco",),
        token_factor=1.1,
    )
    answer = answer_bound(request, PlanObjective(), is_alone=True)
    text, mode = str(answer), answer.best.bound.plan.synchronisation

    assert text.startswith("Answer: Decoupled DiLoCo*\n  ")
    assert "learners report every 100 steps, each by its own clock" in text
    assert "1 of 2 merge, after up to 1 steps of grace, weighed by tokens, in 4 bits" in text
    assert "x 1.100" in text
    assert isinstance(mode, DecoupledDiLoCo)


@pytest.mark.parametrize("trainer", BINDING)
def test_a_document_is_read_back_and_takes_as_long_as_it_says(answers, trainer):
    found = answers[trainer]
    document = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    bound = read_document(document)

    assert bound == found.best.bound
    assert simulate(bound.topology, bound.workload, bound.plan).makespan_s == bound.step_s
    assert document["step_s"] == found.step_s == document["answer"]["kinds"][0]["step_s"]
    assert bound.trainer == trainer


@pytest.mark.parametrize("trainer", BINDING)
def test_every_row_of_the_table_is_a_plan_that_is_no_quicker_than_the_answer(answers, trainer):
    rows = answers[trainer].rows

    assert len({row.kind for row in rows}) == len(rows) > 1
    for row in rows:
        bound = row.bound
        assert simulate(TWO, bound.workload, bound.plan).makespan_s == row.figures.step_s
        assert row.figures.step_s >= answers[trainer].step_s
        assert 0.0 < row.figures.memory_fraction <= 1.0


@pytest.mark.parametrize("trainer", BINDING)
def test_the_page_says_how_far_the_answer_is_over_the_bound_of_all_plans(answers, trainer):
    found = answers[trainer]
    content = found.as_dict()["answer"]

    assert 0.0 < content["bound_s"] <= min(row.figures.step_s for row in found.rows)
    assert content["over_bound"] == found.step_s / content["bound_s"] - 1.0
    assert f"{100.0 * content['over_bound']:.1f} % over the bound" in str(found)


def test_the_page_has_its_sections_and_names_all_other_trainers(answers):
    text = str(answers["megatron"])
    titles = [line for line in text.splitlines() if not line.startswith(" ") and line]

    assert [title.split(",")[0].split(":")[0] for title in titles] == [
        "Answer",
        "Where",
        "Best plan of each kind",
        "Bottleneck",
        "What would change the answer",
        "With other trainers",
    ]
    for name in ("torchtitan", "deepspeed", "reference"):
        other = answers[name]
        line = f"{trainer_named(name).title}: {other.step_s:.4g}"
        assert line[:-1] in text
    assert answers["megatron"]._repr_html_().startswith("<h4>Answer: ")


def test_the_order_of_the_domains_in_the_file_changes_nothing():
    """Names and sizes differ, so what is best has one name."""
    domains = (site("A"), site("B", 8), site("C", 8))
    found = [alone(sites(*order)) for order in (domains, domains[::-1])]

    first, second = (json.loads(json.dumps(one.as_dict())) for one in found)
    assert first["step_s"] == second["step_s"]
    assert first["sites"] == second["sites"]


def in_force(bound: BoundPlan, replacement: Replacement | None = None):
    """The change from a plan in force on the two sites."""
    request = PlanRequest(topology=TWO, job=JOB, trainer=trainer_named("megatron"))
    more = {} if replacement is None else {"replacement": replacement}
    return answer_bound(request, PlanObjective(), in_force=bound, is_alone=True, **more)


def test_the_answer_stays_where_it_is_in_force(answers):
    found = in_force(answers["megatron"].best.bound)

    assert found.change.present_s == found.step_s
    assert (found.change.num_bytes, found.change.change_s) == (0.0, 0.0)
    assert "it is the answer and stays" in str(found)


def test_a_slower_plan_in_force_is_left_and_the_page_says_when_that_has_paid(answers):
    """Layers move to A: 18 bytes for each of their parameters, as gradients are FP32; a restart."""
    slow = next(row.bound for row in answers["megatron"].rows if row.kind == "pipeline")
    found = in_force(slow)
    own = [
        slow.workload.num_parameters[layer]
        for layer, domain in enumerate(slow.plan.placement.domain_of_layer)
        if domain == 1
    ]
    restarted = in_force(slow, Replacement(restart_s=7.0, pays_bytes=False)).change

    assert found.change.num_bytes == pytest.approx(18.0 * sum(own))
    assert found.change.change_s > found.change.num_bytes / 1.25e9
    assert (restarted.num_bytes, restarted.change_s) == (0.0, 7.0)
    assert "paid after" in str(found)


def test_a_plan_in_force_that_is_as_quick_elsewhere_is_never_paid_for(answers):
    """The same the other way round between equal sites: nothing is gained by going there."""
    best = answers["megatron"].best.bound
    turned = tuple(1 - domain for domain in best.plan.placement.domain_of_layer)
    plan = replace(
        best.plan,
        placement=replace(best.plan.placement, domain_of_layer=turned),
        parallelism=best.plan.parallelism[::-1],
    )
    found = in_force(replace(best, plan=plan))

    assert found.change.present_s == found.step_s
    assert found.change.change_s > 0.0
    assert "it never pays" in str(found)


def test_a_plan_in_force_that_has_lost_its_server_cannot_run(answers):
    request = PlanRequest(
        topology=sites(site("A", 8), site("B")), job=JOB, trainer=trainer_named("megatron")
    )
    best = answers["megatron"].best.bound
    found = answer_bound(request, PlanObjective(), in_force=best, is_alone=True)

    assert found.change.present_s is None
    assert "it cannot run: " in str(found)
    assert "paid" not in str(found)


def test_objectives_choose_among_the_same_plans():
    """A GPU costs 1 USD in 1,000 s here, and a byte 1e-11 USD."""
    world = priced(site("A"), site("B", 8))
    quick, cheap, few = (alone(world, text) for text in ("time", "cost", "0,0,1"))

    assert quick.step_s <= min(cheap.step_s, few.step_s)
    assert cheap.best.figures.usd <= min(quick.best.figures.usd, few.best.figures.usd)
    assert few.best.figures.wan_bytes == 0.0
    for found in (quick, cheap, few):
        num_gpus = sum(world.domains[at].num_gpus for at in found.best.candidate.sites)
        usd = num_gpus * found.step_s / 1000.0 + found.best.figures.wan_bytes / 1e11
        assert found.best.figures.usd == pytest.approx(usd)
    assert "USD a step" in str(cheap)


def test_a_limit_is_kept_or_refused_with_what_can_be_had():
    world = priced(site("A"), site("B", 8))
    quick = alone(world)
    kept = alone(world, "cost", f"{1.001 * quick.step_s} s")

    assert kept.step_s <= 1.001 * quick.step_s
    with pytest.raises(ValueError, match=f"at_most: must be at least {quick.step_s:.4g} s"):
        decide(world, JOB, objective=PlanObjective.parse("time", "1e-3 s"))
    with pytest.raises(ValueError, match="prices of GPUs must be given in the network"):
        decide(TWO, JOB, objective=PlanObjective.parse("cost"))


def test_a_job_that_fits_nowhere_is_refused_with_the_least_that_a_gpu_lacks():
    """18 bytes for each of 6.74 billion parameters are 121.3 GB, activations 1.1 GB."""
    with pytest.raises(InfeasiblePlacementError, match=r"at best a GPU lacks 42\.\d GB, with"):
        decide(sites(site("A", 1, None)), JOB)


def test_notes_name_the_servers_that_are_assumed():
    named = "servers of B are not given: each counts as one server of all its GPUs (assumed)"

    assert named in str(decide(sites(site("A", 8), site("B", 16, None)), JOB))
    assert "assumed" not in str(decide(sites(site("A", 8), site("B")), JOB))
