"""The whole run of an answer, by hand: steps, time lost, dollars and bytes."""

import json
from dataclasses import replace

import pytest
from bound_cases import site, sites

from agents.answer.bound_answer import answer_bound
from agents.answer.run_terms import RunTerms
from agents.answer.whole_run import whole_run
from agents.decide import main
from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.trainers.table import trainer_named
from des import Topology
from des.views.prices import notes_on_prices

JOB = TrainingJob(model="llama2_7b", num_sequences=4)
TOKENS_A_STEP = 4 * 4096


def one_gpu(usd_per_hour: float | None = 3.6) -> Topology:
    """A site of one GPU that holds the model."""
    return sites(
        replace(site("A", 1, None), gpu_memory_bytes=160e9, gpu_price_usd_per_hour=usd_per_hour)
    )


def best_row(topology: Topology):
    return search_bound(
        PlanRequest(topology=topology, job=JOB, trainer=trainer_named("megatron"))
    ).best


def test_a_run_without_interruptions_is_its_steps():
    row = best_row(one_gpu())
    terms = RunTerms(num_tokens=1000 * TOKENS_A_STEP, gpu_hours_per_interruption=1e12)
    run = whole_run(row, terms)

    assert run.num_steps == 1000
    assert run.total_s == pytest.approx(run.training_s) == pytest.approx(1000 * row.figures.step_s)
    assert run.usd == pytest.approx(run.training_s / 1000.0)  # 3.6 USD an hour
    assert run.num_interruptions < 1e-6
    assert run.wan_bytes == 0.0
    assert run.checkpoint_bytes == 14 * row.bound.workload.sums_before.num_parameters[-1]


def test_a_last_step_is_a_whole_one():
    run = whole_run(best_row(one_gpu()), RunTerms(num_tokens=TOKENS_A_STEP + 1))

    assert run.num_steps == 2


def test_interruptions_lose_half_the_time_between_checkpoints_and_a_restart():
    """One in 10 h of a GPU, each losing 0.9 h + 0.1 h: a tenth of all time is lost."""
    row = best_row(one_gpu())
    terms = RunTerms(
        num_tokens=10**12, gpu_hours_per_interruption=10.0, checkpoint_s=6480.0, restart_s=360.0
    )
    run = whole_run(row, terms)

    assert run.lost_s == pytest.approx(0.1 * run.total_s)
    assert run.num_interruptions == pytest.approx(run.total_s / 36_000.0)
    assert run.lost_s == pytest.approx(run.num_interruptions * 3600.0)
    assert run.usd == pytest.approx(run.total_s / 1000.0)


def test_interruptions_that_lose_everything_are_refused():
    terms = RunTerms(num_tokens=1, gpu_hours_per_interruption=1.0, checkpoint_s=7200.0)

    with pytest.raises(ValueError, match="checkpoint_s must be below 7200 s, at which interrup"):
        whole_run(best_row(one_gpu()), terms)


def test_a_world_without_prices_has_no_dollars():
    assert whole_run(best_row(one_gpu(None)), RunTerms(num_tokens=10**9)).usd is None


def test_the_page_and_its_document_have_the_run():
    request = PlanRequest(topology=one_gpu(), job=JOB, trainer=trainer_named("megatron"))
    terms = RunTerms(num_tokens=10**9)
    found = answer_bound(request, PlanObjective(), is_alone=True, terms=terms)
    said = json.loads(json.dumps(found.as_dict()))["answer"]["whole_run"]

    assert "The whole run, 1,000,000,000 tokens" in str(found)
    assert said["num_steps"] == 61_036
    assert said["total_s"] == found.run.total_s
    assert said["terms"]["num_tokens"] == 10**9


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--tokens", "15X"], "--tokens must be a whole number of tokens such as"),
        (["--checkpoint-s", "60"], "--tokens must be given with --checkpoint-s, got none"),
        (
            ["--tokens", "1T", "--checkpoint-s", "0"],
            "run: checkpoint_s must be positive and finite, got 0.0",
        ),
    ],
)
def test_bad_terms_are_refused(flags, message, capsys):
    assert main(["--network", "east_central_west", *flags]) == 2
    assert message in capsys.readouterr().err


def priced(gpus: dict[str, float], links: dict[str, float]) -> Topology:
    """Two sites of which some GPUs and links have a price."""
    world = sites(*(replace(site(name, 8), gpu_price_usd_per_hour=gpus.get(name)) for name in "AB"))
    return replace(
        world,
        links=tuple(
            replace(one, price_usd_per_gb=links.get(one.source + one.target)) for one in world.links
        ),
    )


@pytest.mark.parametrize(
    ("gpus", "links", "said"),
    [
        ({}, {}, ()),
        ({"A": 1.0, "B": 1.0}, {"AB": 0.0, "BA": 0.1}, ()),
        ({"A": 1.0, "B": 1.0}, {"AB": 0.1}, ("price_usd_per_gb: B->A",)),
        ({"A": 1.0, "B": 1.0}, {}, ("price_usd_per_gb: A->B, B->A",)),
        ({"A": 1.0}, {"AB": 0.1, "BA": 0.1}, ("gpu_price_usd_per_hour is missing for B",)),
        ({}, {"AB": 0.1}, ("gpu_price_usd_per_hour is missing for A, B",)),
    ],
)
def test_missing_prices_are_noted_and_their_links_are_free(gpus, links, said):
    world = priced(gpus, links)
    notes = notes_on_prices(world)

    assert len(notes) == len(said)
    assert all(part in note for note, part in zip(notes, said, strict=True))
    assert (best_row(world).figures.usd is None) == (len(gpus) < 2)
