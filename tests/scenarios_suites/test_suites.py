"""The suites: worlds as their table says, of the ratio wanted, the same for every method."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import words_printed

from des import (
    ARCHITECTURES,
    InfeasiblePlacementError,
    Placement,
    Plan,
    PlaneWorlds,
    build_workload,
    check_memory,
)
from des.plan.replacement import Replacement
from scenarios.suites import (
    EVALUATION_NAMES,
    NAMES,
    SITE_NAMES,
    draw_purpose,
    nominal_iteration_s,
    suite,
)
from scenarios.suites.catalogue import SUITES
from scenarios.suites.recipe import quickest_even_s

SEEDS = st.integers(0, 2**63 - 1)
INDICES = st.integers(0, 10_000)
RESTART_ONLY = Replacement(pays_bytes=False)
FIVE, TEN, TWENTY = 300.0, 600.0, 1200.0

TABLE = {
    "train": {
        "num_domains": {3, 4, 5, 6, 8, 10},
        "ratio": lambda ratio: 0.3 <= ratio <= 10,
        "dynamics": {
            (law, dwell)
            for law in ("uniform", "ou", "markov_fast", "markov_slow")
            for dwell in (1, 8, 32)
        },
        "epoch_s": {FIVE, TEN, TWENTY},
        "pays_bytes": {True, False},
        "num_microbatches": range(16, 65),
    },
    "eval_static": {
        "num_domains": {4, 5, 6, 10},
        "ratio": lambda ratio: min(abs(ratio / one - 1) for one in (0.5, 1, 2, 4, 8)) < 1e-9,
        "dynamics": {("steady", 1)},
        "epoch_s": {TWENTY},
    },
    "eval_calm": {
        "num_domains": {4, 5, 6},
        "ratio": lambda ratio: 0.5 <= ratio <= 4,
        "dynamics": {("uniform", 1), ("ou_60s", 1), ("ou_600s", 1)},
        "epoch_s": {FIVE},
    },
    "eval_held": {
        "num_domains": {4, 5, 6},
        "ratio": lambda ratio: 0.5 <= ratio <= 4,
        "dynamics": {("uniform", 8)},
        "epoch_s": {FIVE, TWENTY},
    },
    "hard": {
        "num_domains": {4, 5, 6, 10},
        "ratio": lambda ratio: 0.5 <= ratio <= 4,
        "dynamics": {("markov_fast", 1), ("markov_slow", 8)},
        "epoch_s": {FIVE, TWENTY},
    },
    "cheap_moves": {
        "num_domains": {4, 5, 6, 10},
        "ratio": lambda ratio: 0.5 <= ratio <= 4,
        "dynamics": {("uniform", 8), ("markov_fast", 1), ("markov_slow", 8)},
        "epoch_s": {FIVE, TWENTY},
        "pays_bytes": {False},
    },
    "null": {
        "num_domains": {4, 5, 6},
        "ratio": lambda ratio: ratio < 0.25 or ratio > 16,
        "dynamics": {("uniform", 1), ("ou_600s", 1)},
        "epoch_s": {TWENTY},
    },
}
"""Conditions of worlds.md, and additions where it leaves something open."""


def digests(worlds):
    """Digests of worlds, in order."""
    return [one.digest for one in worlds]


def test_every_suite_is_in_the_table():
    assert (*TABLE, *SITE_NAMES) == NAMES
    assert ("train", *EVALUATION_NAMES) == tuple(TABLE)


@pytest.mark.parametrize("name", TABLE)
@settings(max_examples=examples(12))
@given(seed=SEEDS, index=INDICES)
def test_every_field_is_within_the_ranges_of_the_table(name, seed, index):
    asked, found = TABLE[name], suite(name).world(index, seed)

    assert found.name == f"{name}-{seed}-{index:04}"
    assert (found.suite, found.seed, found.index) == (name, seed, index)
    assert found.num_domains in asked["num_domains"]
    assert asked["ratio"](found.ratio)
    assert (found.law, found.load.dwell_epochs) in asked["dynamics"]
    assert (found.load.low_factor, found.load.high_factor) == (0.8, 1.2)
    assert found.epoch_s in asked["epoch_s"]
    assert found.workload.num_microbatches in asked.get("num_microbatches", {32})
    assert found.workload.name in ARCHITECTURES
    assert found.replacement in [
        Replacement(pays_bytes=pays) for pays in asked.get("pays_bytes", {True})
    ]
    assert found.num_epochs == (1 if name == "eval_static" else 64)
    assert found.schedule == "1f1b_4x"


@pytest.mark.parametrize("name", TABLE)
@settings(max_examples=examples(12))
@given(seed=SEEDS, index=INDICES)
def test_a_world_has_the_ratio_that_was_asked_for_by_figures_in_range(name, seed, index):
    found = suite(name).world(index, seed)
    links, domains = found.topology.links, found.topology.domains

    assert found.ratio == pytest.approx(found.target_ratio, rel=1e-12)
    assert len(links) == len(domains) * (len(domains) - 1)
    assert 1e9 / 8 <= np.mean([link.bandwidth_bytes_per_s for link in links]) <= 10e9 / 8
    assert min(link.bandwidth_bytes_per_s for link in links) >= 1e9 / 8
    assert all(0.005 <= link.latency_s <= 0.120 for link in links)
    for domain in domains:
        assert domain == replace(domains[0], name=domain.name)
        assert domain.num_gpus == 8
        assert 0.48e15 <= domain.attainable_flops_per_s <= 3.2e15
        assert domain.gpu_memory_bytes in (80e9, 141e9, 288e9)


@pytest.mark.parametrize("name", TABLE)
@settings(max_examples=examples(6))
@given(seed=SEEDS, index=INDICES)
def test_an_even_split_fits_and_ten_iterations_of_it_last_no_longer_than_an_epoch(
    name, seed, index
):
    found = suite(name).world(index, seed)
    times_s = []
    for num_stages in range(1, found.num_domains + 1):
        placement = Placement.even(num_stages, found.workload.num_layers)
        plan = Plan(placement=placement, schedule=found.schedule)
        try:
            check_memory(found.topology, found.workload, plan)
        except InfeasiblePlacementError:
            continue
        times_s.append(nominal_iteration_s(found.workload, found.topology, num_stages))

    iteration_s = min(times_s)
    assert found.iterations_per_epoch >= 10
    assert found.iterations_per_epoch * iteration_s <= found.epoch_s
    assert (found.iterations_per_epoch + 1) * iteration_s > found.epoch_s


def test_every_block_of_the_static_suite_has_each_cell_once():
    worlds = suite("eval_static").worlds(40, seed=5)

    cells = [(one.num_domains, round(one.ratio, 9)) for one in worlds]
    every = {(count, ratio) for count in (4, 5, 6, 10) for ratio in (0.5, 1.0, 2.0, 4.0, 8.0)}
    assert set(cells[:20]) == set(cells[20:]) == every
    assert cells[:20] != cells[20:]  # in another order


def test_a_block_of_the_training_suite_has_the_shares_of_the_table():
    """One number of domains: 12 laws with dwell times, 3 lengths of epochs, 2 prices."""
    worlds = suite("train").with_domains(4).worlds(72, seed=1)

    assert {one.num_domains for one in worlds} == {4}
    assert Counter(one.law for one in worlds) == {
        "uniform": 18, "ou": 18, "markov_fast": 18, "markov_slow": 18,
    }  # fmt: skip
    assert Counter(one.load.dwell_epochs for one in worlds) == {1: 24, 8: 24, 32: 24}
    assert Counter(one.epoch_s for one in worlds) == {FIVE: 24, TEN: 24, TWENTY: 24}
    assert Counter(one.replacement.pays_bytes for one in worlds) == {True: 36, False: 36}
    ratios = np.log([one.target_ratio for one in worlds])
    middle, width = np.log(0.3 * 10) / 2, np.log(10 / 0.3)
    assert ratios.mean() == pytest.approx(middle, abs=4 * width / np.sqrt(12 * 72))
    assert ratios.std() == pytest.approx(width / np.sqrt(12), rel=0.25)


@pytest.mark.parametrize("name", NAMES)
def test_worlds_depend_on_name_seed_and_index_alone(name):
    forwards = suite(name).worlds(4, seed=9)
    backwards = [suite(name).world(index, 9) for index in reversed(range(4))]

    assert list(forwards) == backwards[::-1]
    assert suite(name).worlds(2, seed=9) == forwards[:2]
    assert len({*digests(forwards), *digests(suite(name).worlds(4, seed=10))}) == 8


def test_worlds_and_their_epochs_are_the_same_in_another_process():
    script = (
        "from scenarios.suites import suite; w = suite('hard').world(2, 11); "
        "print(w.digest, w.epoch_topology(7, 5).at_start().links[3].bandwidth_bytes_per_s)"
    )
    found = suite("hard").world(2, 11)
    link = found.epoch_topology(7, 5).at_start().links[3]
    assert words_printed(script) == [found.digest, str(link.bandwidth_bytes_per_s)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(5))
@given(seed=SEEDS)
def test_every_world_has_the_purpose_of_its_suite(name, seed):
    one = suite(name)

    assert one.purpose == ("train" if name in ("train", "sites_train") else "eval")
    for found in one.worlds(3, seed):
        assert draw_purpose(found.topology, found.workload) == one.purpose


@settings(max_examples=examples(10))
@given(seed=SEEDS)
def test_the_same_seed_and_stream_give_training_and_evaluation_other_worlds(seed):
    """Without the rule on digests, the two suites here would be the same."""
    train = suite("train")
    evaluation = replace(train, purpose="eval")

    assert not set(digests(train.worlds(4, seed))) & set(digests(evaluation.worlds(4, seed)))


def test_half_of_the_worlds_there_could_be_are_for_either_purpose():
    job = build_workload("llama2_7b")
    topologies = (PlaneWorlds(num_domains=3).draw(np.random.default_rng(i)) for i in range(100))

    counts = Counter(draw_purpose(topology, job) for topology in topologies)
    assert counts.keys() == {"train", "eval"}
    assert 30 <= counts["eval"] <= 70  # 4 standard deviations


def test_no_two_recipes_share_random_numbers_but_for_the_cheap_moves_and_site_training():
    shared = ("cheap_moves", "sites_train")
    own = [recipe for name in NAMES for recipe in SUITES[name].recipes if name not in shared]
    held, hard = suite("cheap_moves").recipes

    assert len({recipe.stream for recipe in own}) == len(own)
    assert [held.stream, hard.stream] == [
        suite(name).recipes[0].stream for name in ("eval_held", "hard")
    ]


def test_cheap_moves_are_the_held_and_the_hard_worlds_at_another_price():
    cheap = suite("cheap_moves").worlds(6, seed=2)
    full = [suite(name).world(place, 2) for place in range(3) for name in ("eval_held", "hard")]

    for found, dear in zip(cheap, full, strict=True):
        assert (found.topology, found.workload) == (dear.topology, dear.workload)
        assert found.epoch_topology(4, 63) == dear.epoch_topology(4, 63)
        assert found.iterations_per_epoch == dear.iterations_per_epoch
        assert (found.replacement, dear.replacement) == (RESTART_ONLY, Replacement())


def test_unknown_suites_indices_and_sizes_are_refused():
    with pytest.raises(ValueError, match=r"suite: name must be one of train, eval_static, .*; got"):
        suite("easy")
    with pytest.raises(ValueError, match="suite hard: index must be a whole number"):
        suite("hard").world(-1)
    with pytest.raises(ValueError, match="suite hard: num must be a whole number from 1"):
        suite("hard").worlds(0)
    with pytest.raises(ValueError, match="suite null: num_domains must be some of 4, 5, 6; got 10"):
        suite("null").with_domains(10)
    with pytest.raises(ValueError, match=r"num_domains must be some of .*; got none"):
        suite("null").with_domains()


def test_a_cell_that_nothing_meets_is_one_clear_error():
    """A model of 405B parameters, whose 6.5 TB of state leave three domains no room for more."""
    train = suite("train").recipes[0]
    large = replace(train, models=("llama3_405b",), num_domains=(3,), ratio_bounds=((1.0, 1.0),))

    with pytest.raises(ValueError, match=r"recipe: models, .* ratio 1 for 3 domains .* 512 tries"):
        large.draw(0, 0, "train")


def test_a_job_that_fits_nowhere_has_no_time():
    topology = PlaneWorlds(num_domains=3).draw(np.random.default_rng(0))

    assert quickest_even_s(topology, build_workload("llama3_405b"), "1f1b") == float("inf")
