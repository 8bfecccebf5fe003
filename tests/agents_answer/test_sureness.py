"""Doubt of an answer: fresh searches, the plan's own range, and drawn courses."""

from dataclasses import replace

import numpy as np
import pytest
from bound_cases import site, sites
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.answer.bound_answer import answer_bound
from agents.answer.sureness import OFF_FACTORS, sureness_of
from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.trainers.table import trainer_named
from des import Corrections, Topology
from des.compiled.simulate import simulate_compiled
from des.dynamics import UniformLaw
from des.world.lost_parts import without_domain, without_links

JOB = TrainingJob(model="llama2_7b", num_sequences=64)
SMALL = sites(*(site(name, 8) for name in "ABC"))
TIME = PlanObjective()
LEAST, MOST = OFF_FACTORS


def request(topology: Topology, job: TrainingJob = JOB) -> PlanRequest:
    return PlanRequest(topology=topology, job=job, trainer=trainer_named("megatron"))


def test_a_job_on_one_gpu_takes_as_much_longer_as_its_layers_do():
    only = replace(site("A", 1, None), gpu_memory_bytes=160e9)
    asked = request(sites(only), TrainingJob(model="llama2_7b", num_sequences=4))
    best = search_bound(asked).best
    known = sureness_of(asked, TIME, best)

    assert [one.title for one in known.cases] == ["times of layers x 0.8", "times of layers x 1.25"]
    assert [one.present_s / best.figures.step_s for one in known.cases] == pytest.approx(
        OFF_FACTORS
    )
    assert (known.least_s, known.most_s) == pytest.approx(
        tuple(factor * best.figures.step_s for factor in OFF_FACTORS)
    )
    assert all(one.keeps_plan for one in known.cases)
    assert known.spread is None


@settings(max_examples=6, deadline=None)
@given(
    bandwidths=st.lists(st.floats(min_value=0.3, max_value=8.0), min_size=6, max_size=6),
    gpus=st.lists(st.sampled_from([8, 16, 32]), min_size=3, max_size=3),
)
def test_no_case_is_contradicted_by_a_search_that_knows_nothing_of_the_answer(bandwidths, gpus):
    plain = sites(*(site(name, count) for name, count in zip("ABC", gpus, strict=True)))
    world = plain.scaled(np.array(bandwidths), np.ones(6))
    asked = request(world)
    found = search_bound(asked)
    best = found.best

    for case in sureness_of(asked, TIME, best, near=found.near).cases:
        topology, off = world, Corrections()
        kind, _, what = case.title.rpartition(" ")
        if kind == "without":
            lost = what.split("-")
            topology = without_links(world, *lost) if lost[1:] else without_domain(world, *lost)
        elif kind.startswith("bandwidths"):
            off = Corrections(wan_bandwidth_factor=float(what))
        else:
            off = Corrections(compute_time_factor=float(what))
        fresh = search_bound(replace(asked, topology=topology, corrections=off)).best
        bound = best.bound

        assert case.row is not None
        assert case.row.figures.step_s <= fresh.figures.step_s
        if topology.num_domains == 3:
            present_s = simulate_compiled(topology, bound.workload, bound.plan, off).makespan_s
            assert case.present_s == present_s >= case.row.figures.step_s
        else:
            assert case.present_s is None


def test_what_the_plan_takes_lies_in_its_range_wherever_each_link_is_in_it():
    world = SMALL
    asked = request(world)
    best = search_bound(asked).best
    known = sureness_of(asked, TIME, best)
    bound, rng = best.bound, np.random.default_rng(0)

    assert len(best.candidate.sites) > 1
    for _ in range(50):
        drawn = world.scaled(rng.uniform(LEAST, MOST, len(world.links)), np.ones(len(world.links)))
        off = Corrections(compute_time_factor=rng.uniform(LEAST, MOST))
        step_s = simulate_compiled(drawn, bound.workload, bound.plan, off).makespan_s
        assert known.least_s <= step_s <= known.most_s


def test_without_a_link_the_way_leads_over_another_site_or_nowhere():
    world = sites()
    cut = without_links(world, "B", "A")
    two = without_links(sites(site("A"), site("B")), "A", "B")

    assert [str(one) for one in world.links if one not in cut.links] == [
        "link A->B",
        "link B->A",
    ]
    assert len(cut.route(0, 1)) == 2
    assert two.links == ()
    assert [one.name for one in without_domain(world, "B").domains] == ["A", "C"]


def test_steps_on_drawn_links_are_told_by_their_median_and_95th_percentile():
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    world = replace(SMALL, dynamics=law)
    asked = request(world)
    best = search_bound(asked).best
    spread = sureness_of(asked, TIME, best).spread
    drawn = [
        simulate_compiled(world.epoch_of(seed), best.bound.workload, best.bound.plan).makespan_s
        for seed in range(32)
    ]

    assert spread is not None
    assert spread.num_courses == 32
    assert (spread.median_s, spread.p95_s) == tuple(np.percentile(drawn, (50, 95)))
    assert min(drawn) < spread.median_s < spread.p95_s < max(drawn)


def test_the_page_and_its_document_say_each_case():
    found = answer_bound(request(SMALL), TIME)
    known = found.as_dict()["answer"]["sureness"]
    lines = str(found).splitlines()
    start = lines.index("What would change the answer, searched again for each line")

    assert found.sureness is not None
    for line, case, one in zip(
        lines[start + 2 :], known["cases"], found.sureness.cases, strict=False
    ):
        assert line.startswith(f"  {case['case']} ")
        assert line.endswith("cannot run") == (one.present_s is None)
        assert case["step_s"] == one.row.figures.step_s
    assert known["least_s"] < found.step_s < known["most_s"]


def test_an_answer_alone_has_no_other_cases():
    found = answer_bound(request(SMALL), TIME, is_alone=True)

    assert found.sureness is None
    assert "What would change" not in str(found)
    assert "sureness" not in found.as_dict()["answer"]
