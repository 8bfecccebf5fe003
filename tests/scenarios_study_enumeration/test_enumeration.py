"""The enumeration: bounds below the simulator, all plans of a small world, and the command."""

import json
from math import inf

import numpy as np
import pytest
from bound_cases import site, sites
from hypothesis import given
from search_candidates import candidates

from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.schedule_choice import INTERLEAVED
from agents.search.search import PlanRequest
from agents.trainers.table import trainer_named
from scenarios.enumerate_plans import main
from scenarios.study.enumeration.bounds import Least, interleaved_bound_s, plain_bound_s
from scenarios.study.enumeration.drawn_worlds import drawn_case
from scenarios.study.enumeration.exhaustive import enumerate_all
from scenarios.study.enumeration.site_copies import blocks_of_sites


@given(candidates(schedules=("1f1b", INTERLEAVED)))
def test_bounds_are_never_above_the_time(case):
    workspace, candidate = case
    setting, chain, split = candidate.setting, candidate.chains[0], candidate.splits[0]
    figures, rules = workspace.figures(setting), workspace.rules(setting, is_whole=True)
    rest = rules.num_microbatches % round(setting.group_factor * candidate.num_workers)
    arrays = np.array(chain), np.array(split)
    if setting.num_chunks == 1:
        bound_s = plain_bound_s(figures, rules, *arrays)
    elif rest == 0 or rest >= candidate.num_workers:
        bound_s = interleaved_bound_s(figures, Least.of(figures), rules, *arrays)
    else:
        return

    assert bound_s <= workspace.time_s(setting, chain, split) * (1 + 1e-12)


def test_three_sites_have_all_arrangements_of_copies():
    """Six pairs of two sites; of three sites six orders, cut at one place, the other, or both."""
    assert len(blocks_of_sites(3)) == len(set(blocks_of_sites(3))) == 6 + 6 * 3


def test_a_limit_leaves_out_nothing_that_is_below_it():
    """With no limit, and with one just over the best of all, the best is the same."""
    world, job = sites(site("A", 8), site("B", 8)), TrainingJob(model="llama2_7b", num_sequences=8)
    megatron = trainer_named("megatron")

    best = enumerate_all(world, job, megatron, inf, lambda _: None)
    again = enumerate_all(world, job, megatron, 1.0001 * best.step_s, lambda _: None)
    none = enumerate_all(world, job, megatron, best.step_s, lambda _: None)

    assert again.step_s == best.step_s == none.step_s
    assert again.plan == best.plan
    assert none.plan == ""
    assert none.num_simulated <= again.num_simulated <= best.num_simulated


def test_worlds_of_more_than_three_sites_are_refused():
    world = sites(*(site(name) for name in "ABCD"))
    job = TrainingJob(model="llama2_7b", num_sequences=8)
    with pytest.raises(ValueError, match="enumeration: the world must have at most 3 sites, got 4"):
        enumerate_all(world, job, trainer_named("megatron"), inf, lambda _: None)


def test_drawn_worlds_are_equal_for_equal_seeds():
    assert drawn_case(3) == drawn_case(3)
    assert {drawn_case(seed)[0].num_domains for seed in range(20)} == {2, 3}


def test_the_command_prints_the_gap_of_each_world_and_over_all(tmp_path, capsys):
    (tmp_path / "job.json").write_text(
        '{"model": "llama3_8b", "microbatches": 16, "microbatch_size": 1, "sequence_length": 2048}'
    )
    domain = "{num_gpus: 8, gpu: h100, intra_bandwidth: 450GB/s, intra_latency: 3us"
    (tmp_path / "world.yaml").write_text(
        f"topology:\n  domains:\n    - {domain}, name: A}}\n    - {domain}, name: B}}\n"
        "  cross_domain_links:\n"
        "    - {source: A, dest: B, bandwidth: 10Gbps, latency: 5ms}\n"
        "dynamics: steady\n"
    )
    flags = ["--network", str(tmp_path / "world.yaml"), "--job", str(tmp_path / "job.json")]

    assert main([*flags, "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    (row,) = document["worlds"]
    assert row["gap_fraction"] == document["mean_gap"] == document["worst_gap"] >= 0.0
    assert row["enumerated_s"] <= row["search_s"]
    assert main(["--network", str(tmp_path / "world.yaml")]) == 2


@pytest.mark.parametrize(
    ("seed", "known_s"), [(2023, 22.081), (3002, 6.6349), (3023, 4.6084), (3027, 5.2534)]
)
def test_stages_with_more_to_do_have_fewer_layers_in_the_answer(seed, known_s):
    """Plans that a search of all settings found: the head and sends cost a stage whole layers."""
    topology, job = drawn_case(seed)
    request = PlanRequest(topology=topology, job=job, trainer=trainer_named("megatron"))

    assert search_bound(request).best.figures.step_s <= known_s * 1.001
