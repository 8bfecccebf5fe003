"""The suites: worlds as their table says, of the ratio asked for, the same for every method."""

import dataclasses
import re
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import unit_domain, unit_workload, world

from agents.task import Replacement
from des import (
    ARCHITECTURES,
    STEADY,
    Dynamics,
    InfeasiblePlacementError,
    Link,
    Movement,
    Placement,
    Plan,
    PlaneWorlds,
    Topology,
    build_workload,
    check_memory,
    read_topology,
    simulate,
)
from des.dynamics import DYNAMICS
from des.kernels.random_numbers import derived_seed
from des.transformer import model_parameters
from scenarios.files import read_csv
from scenarios.suites import (
    NAMES,
    LoadLaw,
    nominal_iteration_s,
    purpose_of,
    suite,
    transfer_compute_ratio_of,
)
from scenarios.suites.__main__ import Config, main
from scenarios.suites.catalogue import SUITES
from scenarios.suites.laws import LAWS
from scenarios.suites.load import loaded
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
"""What worlds.md recommends, and what was added where it leaves something open."""


def equal_links(names, bytes_per_s, *, latency_s=0.0):
    """Unit domains, every two joined by links of one bandwidth."""
    ends = ["".join(pair) for pair in permutations(names, 2)]
    return world(names, dict.fromkeys(ends, (bytes_per_s, latency_s)))


def digests(worlds):
    """Digests of worlds, in order."""
    return [one.digest for one in worlds]


def test_every_suite_is_in_the_table():
    assert tuple(TABLE) == NAMES


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
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


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
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


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=6)
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


def test_ratio_of_a_hand_computed_world():
    """6 bytes at a mean of 1.5 bytes/s over 4.5 FLOPs on 1 and on 3 FLOP/s: 4 s / 3 s."""
    topology = Topology.of(
        [unit_domain("A", flops_per_s=1.0), unit_domain("B", flops_per_s=3.0)],
        [
            Link(source="A", target="B", bandwidth_bytes_per_s=1.0, latency_s=5.0),
            Link(source="B", target="A", bandwidth_bytes_per_s=2.0, latency_s=7.0),
        ],
    )
    job = unit_workload([(4.0, 1.0), (5.0, 1.0)], num_microbatches=3, message_bytes=6.0)

    assert transfer_compute_ratio_of(job, topology) == pytest.approx(4 / 3, rel=1e-12)


def test_ratio_is_h_f_over_b_n_k_for_a_model_of_two_flops_a_parameter_and_token():
    tokens, hidden, parameters = 512, 64, 1.0e6
    job = unit_workload(
        [(2 * tokens * parameters / 4, 1.0)] * 4,
        num_microbatches=7,
        message_bytes=2.0 * tokens * hidden,
    )
    topology = equal_links("ABC", 50.0)

    expected = hidden * 1.0 / (50.0 * parameters / 3)
    assert transfer_compute_ratio_of(job, topology) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", ARCHITECTURES)
def test_ratio_of_the_models_is_below_the_formula_by_their_attention(model):
    topology = PlaneWorlds(num_domains=4).draw(np.random.default_rng(0))
    mean = np.mean([link.bandwidth_bytes_per_s for link in topology.links])
    shape = ARCHITECTURES[model]
    formula = shape.hidden_size * 0.48e15 / (mean * model_parameters(shape) / 4)

    share = transfer_compute_ratio_of(build_workload(model), topology) / formula
    assert 1 / 1.15 < share < 1 / 1.03


@given(
    num_domains=st.integers(2, 6),
    layers_each=st.integers(1, 3),
    num_microbatches=st.integers(1, 8),
    bandwidth=st.floats(0.1, 10.0),
    speeds=st.lists(st.floats(0.5, 2.0), min_size=6, max_size=6),
)
def test_ratio_is_that_of_an_even_split_over_equal_links(
    num_domains, layers_each, num_microbatches, bandwidth, speeds
):
    """Also where domains are not equally fast: both average the forward times."""
    names = "ABCDEF"[:num_domains]
    links = equal_links(names, bandwidth, latency_s=0.5).links
    domains = [
        unit_domain(name, flops_per_s=speed) for name, speed in zip(names, speeds, strict=False)
    ]
    topology = Topology.of(domains, links)
    job = unit_workload(
        [(1.0, 2.0)] * (num_domains * layers_each),
        num_microbatches=num_microbatches,
        message_bytes=3.0,
    )

    plan = Plan(placement=Placement.even(num_domains, job.num_layers))
    measured = simulate(topology, job, plan).transfer_compute_ratio
    assert transfer_compute_ratio_of(job, topology) == pytest.approx(measured, rel=1e-9)


def test_a_world_without_links_has_no_ratio():
    job = unit_workload([(1.0, 1.0)], num_microbatches=1)

    with pytest.raises(ValueError, match="topology: links must hold at least one link"):
        transfer_compute_ratio_of(job, world("A", {}))


@given(
    num_stages=st.integers(1, 6),
    num_microbatches=st.integers(1, 24),
    transfer_s=st.floats(0.0, 12.0),
    latency_s=st.floats(0.0, 1.0),
)
def test_no_even_pipeline_beats_the_nominal_time_and_a_deep_one_is_near(
    num_stages, num_microbatches, transfer_s, latency_s
):
    topology = equal_links("ABCDEF"[: max(num_stages, 2)], 1.0, latency_s=latency_s)
    job = unit_workload(
        [(1.0, 2.0)] * num_stages, num_microbatches=num_microbatches, message_bytes=transfer_s
    )
    # Times are of unit domains; those beyond the stages do not change the time of a stage.
    nominal_s = nominal_iteration_s(job, topology, num_stages)

    placement = Placement.even(num_stages, num_stages)
    makespans_s = {
        schedule: simulate(topology, job, Plan(placement=placement, schedule=schedule)).makespan_s
        for schedule in ("gpipe", "1f1b", "1f1b_4x")
    }
    assert min(makespans_s.values()) >= nominal_s * (1 - 1e-9)
    assert makespans_s["1f1b_4x"] <= 1.5 * nominal_s


@given(num_stages=st.integers(2, 6), num_microbatches=st.integers(1, 24))
def test_nominal_time_is_that_of_1f1b_on_free_links(num_stages, num_microbatches):
    topology = equal_links("ABCDEF"[:num_stages], 1e300)
    job = unit_workload([(1.0, 2.0)] * num_stages, num_microbatches=num_microbatches)

    expected = 3.0 * (num_microbatches + num_stages - 1)
    assert nominal_iteration_s(job, topology, num_stages) == pytest.approx(expected)


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
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "54321"},
    )

    found = suite("hard").world(2, 11)
    link = found.epoch_topology(7, 5).at_start().links[3]
    assert done.stdout.split() == [found.digest, str(link.bandwidth_bytes_per_s)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5)
@given(seed=SEEDS)
def test_every_world_has_the_purpose_of_its_suite(name, seed):
    one = suite(name)

    assert one.purpose == ("train" if name == "train" else "eval")
    for found in one.worlds(3, seed):
        assert purpose_of(found.topology, found.workload) == one.purpose


@settings(max_examples=10)
@given(seed=SEEDS)
def test_the_same_seed_and_stream_give_training_and_evaluation_other_worlds(seed):
    """Without the rule on digests, the two suites here would be the same."""
    train = suite("train")
    evaluation = replace(train, purpose="eval")

    assert not set(digests(train.worlds(4, seed))) & set(digests(evaluation.worlds(4, seed)))


def test_half_of_the_worlds_there_could_be_are_for_either_purpose():
    job = build_workload("llama2_7b")
    topologies = (PlaneWorlds(num_domains=3).draw(np.random.default_rng(i)) for i in range(100))

    counts = Counter(purpose_of(topology, job) for topology in topologies)
    assert counts.keys() == {"train", "eval"}
    assert 30 <= counts["eval"] <= 70  # 4 standard deviations


def test_no_two_recipes_share_random_numbers_but_for_the_cheap_moves():
    own = [recipe for name in NAMES for recipe in SUITES[name].recipes if name != "cheap_moves"]
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


def test_load_is_uniform_and_held_for_its_dwell():
    law = LoadLaw(dwell_epochs=8)
    factors = np.array([law.factors(5, 3, epoch) for epoch in range(0, 8000, 8)])

    assert 0.8 <= factors.min() < 0.801
    assert 1.199 < factors.max() < 1.2
    deviation = 0.4 / np.sqrt(12)
    assert factors.mean() == pytest.approx(1.0, abs=4 * deviation / np.sqrt(factors.size))
    assert factors.std() == pytest.approx(deviation, rel=0.03)
    assert np.abs(np.corrcoef(factors.T) - np.eye(5)).max() < 4 / np.sqrt(1000)
    assert abs(np.corrcoef(factors[:-1, 0], factors[1:, 0])[0, 1]) < 4 / np.sqrt(1000)
    for epoch in range(16, 24):
        assert law.factors(5, 3, epoch).tolist() == factors[2].tolist()


def test_load_of_a_domain_does_not_depend_on_how_many_there_are():
    assert LoadLaw().factors(3, 1, 9).tolist() == LoadLaw().factors(10, 1, 9)[:3].tolist()
    assert LoadLaw().factors(3, 1, 9).tolist() != LoadLaw().factors(3, 2, 9).tolist()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"low_factor": 0.0}, "load law: low_factor must be positive"),
        ({"high_factor": float("nan")}, "load law: high_factor must be positive"),
        ({"low_factor": 1.3}, "load law: low_factor must be at most high_factor 1.2, got 1.3"),
        ({"dwell_epochs": 0}, "load law: dwell_epochs must be a whole number from 1"),
    ],
)
def test_bad_load_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        LoadLaw(**fields)


@pytest.mark.parametrize("name", ["uniform", "ou", "markov_fast"])
def test_an_epoch_is_the_law_and_the_load_composed_by_hand(name):
    """Links by the path of the law at the start of the epoch, speeds by the load law."""
    found = next(one for one in suite("train").worlds(24, seed=3) if one.law == name)
    law, key = found.topology.dynamics, int(found.digest[:15], 16)
    links_seed, load_seed = (int(derived_seed(21, key, part)) for part in (0, 1))
    path = law.path(found.topology.links, links_seed)
    for epoch in (63, 0, 7, 40):
        seen = found.epoch_topology(21, epoch).at_start()

        pieces = [
            path.piece_at(link, epoch * found.epoch_s) for link in range(len(found.topology.links))
        ]
        assert [link.bandwidth_bytes_per_s for link in seen.links] == [
            link.bandwidth_bytes_per_s * piece.bandwidth_factor
            for link, piece in zip(found.topology.links, pieces, strict=True)
        ]
        assert [link.latency_s for link in seen.links] == [
            link.latency_s * piece.latency_factor
            for link, piece in zip(found.topology.links, pieces, strict=True)
        ]
        factors = found.load.factors(found.num_domains, load_seed, epoch)
        assert seen.domains == loaded(found.topology, factors).domains
        assert [domain.attainable_fraction for domain in seen.domains] == (0.5 * factors).tolist()


@pytest.mark.parametrize(
    ("name", "stands_still"), [("eval_held", True), ("hard", False), ("eval_static", True)]
)
def test_links_move_within_an_epoch_where_their_law_does(name, stands_still):
    found = suite(name).world(0, 1)
    last = found.num_epochs - 1
    topology = found.epoch_topology(5, last)

    assert found.has_still_epochs == stands_still
    if stands_still:
        assert topology.movement is None
    else:
        assert isinstance(topology.movement, Movement)
        assert topology.movement.start_s == last * found.epoch_s
        assert topology.movement.law == found.topology.dynamics


def test_held_links_and_load_change_every_eighth_epoch_together():
    found = suite("eval_held").world(1, 4)
    epochs = [found.epoch_topology(0, epoch) for epoch in range(24)]

    for epoch in range(1, 24):
        is_new = epoch % 8 == 0
        assert (epochs[epoch].links != epochs[epoch - 1].links) == is_new
        assert (epochs[epoch].domains != epochs[epoch - 1].domains) == is_new


def test_static_worlds_have_a_load_and_links_at_their_base_figures():
    found = suite("eval_static").world(3)
    topology = found.epoch_topology(0, 0)

    assert found.topology.dynamics == STEADY
    assert topology.links == found.topology.links
    assert len({domain.attainable_fraction for domain in topology.domains}) == found.num_domains


def test_epochs_do_not_depend_on_what_was_asked_before_and_draws_differ():
    found = suite("hard").world(1, 6)
    forwards = [found.epoch_topology(2, epoch) for epoch in range(8)]

    again = suite("hard").world(1, 6)
    assert [again.epoch_topology(2, epoch) for epoch in reversed(range(8))] == forwards[::-1]
    other = [found.epoch_topology(3, epoch) for epoch in range(8)]
    assert all(one != two for one, two in zip(forwards, other, strict=True))


@pytest.mark.parametrize(("name", "held_s"), [("ou_60s", 300.0), ("ou_600s", 4.0), ("ou", 600.0)])
def test_wandering_links_have_the_figures_of_the_presets(name, held_s):
    law = LAWS[name](held_s)

    assert law.bandwidth_sigma == 0.15
    assert law.relaxation_s == {"ou_60s": 60.0}.get(name, 600.0)
    assert LAWS["ou_60s"](300.0) == DYNAMICS["ou"]
    assert LAWS["uniform"](7.0) == Dynamics(
        bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=7.0
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"iterations_per_epoch": 9}, "iterations_per_epoch must be at least 10, got 9"),
        ({"iterations_per_epoch": 2.5}, "iterations_per_epoch must be a whole number"),
        ({"epoch_s": 0.0}, "epoch_s must be positive and finite, got 0.0"),
        ({"num_epochs": 0}, "num_epochs must be a whole number from 1"),
        ({"seed": -1}, r"seed must be a whole number within \[0, 2\*\*63\), got -1"),
        ({"target_ratio": float("inf")}, "target_ratio must be positive"),
        ({"schedule": "2f2b"}, "schedule: must be one of"),
        ({"load": LoadLaw(high_factor=2.5)}, "attainable_fraction of domain domain0 must be at mo"),
    ],
)
def test_a_world_that_makes_no_sense_is_refused(fields, message):
    found = suite("eval_held").world(0)

    with pytest.raises(ValueError, match=message):
        replace(found, **fields)


def test_a_topology_under_way_or_drawn_by_epochs_is_refused():
    found = suite("hard").world(0)

    with pytest.raises(ValueError, match="topology must not be moving already"):
        replace(found, topology=found.epoch_topology(0, 0))
    once = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    with pytest.raises(ValueError, match=r"law.update_interval_s must be given in seconds, got No"):
        replace(found, topology=replace(found.topology, dynamics=once))


@pytest.mark.parametrize(
    ("draw_seed", "epoch", "message"),
    [
        (-1, 0, "draw_seed must be a whole number within"),
        (0, 64, "epoch must be a whole number from 0 to 63, got 64"),
        (0, -1, "epoch must be a whole number from 0 to 63, got -1"),
        (0, True, "epoch must be a whole number from 0 to 63, got True"),
    ],
)
def test_an_epoch_that_there_is_not_is_refused(draw_seed, epoch, message):
    with pytest.raises(ValueError, match=f"world eval_held-0-0000: {message}"):
        suite("eval_held").world(0).epoch_topology(draw_seed, epoch)


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


def run(capsys, *flags):
    """Run the command and return what it printed."""
    assert main(list(flags)) == 0
    return capsys.readouterr().out


def test_the_command_lists_the_worlds_and_their_ranges(capsys):
    shown = run(capsys, "hard", "--num", "4", "--seed", "3").splitlines()
    worlds = suite("hard").worlds(4, seed=3)

    assert len(shown) == 6
    for line, found in zip(shown[1:5], worlds, strict=True):
        cells = line.split()
        assert cells[:5] == [
            *(found.name, str(found.num_domains), found.workload.name, "32", f"{found.ratio:.3g}"),
        ]
        assert cells[-1] == "bytes"
    ratios = [one.ratio for one in worlds]
    assert shown[5].startswith("4 worlds of hard: K ")
    assert f"R {min(ratios):.3g}-{max(ratios):.3g}, M 32, " in shown[5]


def test_the_files_are_the_worlds(tmp_path, capsys):
    out = tmp_path / "new" / "worlds"
    shown = run(capsys, "cheap_moves", "--num", "5", "--seed", "1", "--out", str(out))
    worlds = suite("cheap_moves").worlds(5, seed=1)

    assert shown.endswith(f"written: {out} (6 files)\n")
    index = read_csv(out / "index.csv")
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["index.csv", *index["topology_file"]]
    )
    for (_, row), found in zip(index.iterrows(), worlds, strict=True):
        assert read_topology(out / row["topology_file"]) == found.topology
        assert (row["world"], row["model"]) == (found.name, found.workload.name)
        assert (row["ratio"], row["epoch_s"]) == (found.ratio, found.epoch_s)
        assert row["iterations_per_epoch"] == found.iterations_per_epoch
        assert not row["pays_bytes"]
        assert row["digest"] == found.digest
    text = (out / f"{worlds[0].name}.yaml").read_text("utf-8")
    assert "# python -m scenarios.suites cheap_moves --num 5 --seed 1 --out DIR\n" in text


def test_the_same_command_writes_the_same_bytes(tmp_path, capsys):
    for name in ("one", "two"):
        run(capsys, "train", "--num", "3", "--out", str(tmp_path / name))

    first, again = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert first == again


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "NAME must come first, one of train, eval_static, .*, null; got none"),
        (["--num", "3"], "NAME must come first, one of train, eval_static, .*, null; got none"),
        (["hrd"], "unknown suite 'hrd'; did you mean 'hard'?"),
        (["hard", "--num", "0"], "suite hard: num must be a whole number from 1 to 100000, got 0"),
        (["hard", "--seed", "-1"], "suite hard: seed must be a whole number within .*, got -1"),
        (["hard", "--num", "few"], "argument --num: .*'few'"),
        (["hard", "easy"], "unknown argument 'easy'"),
    ],
)
def test_bad_flags_are_refused_in_one_line_and_nothing_is_written(flags, message, tmp_path, capsys):
    out = tmp_path / "out"

    assert main([*flags, "--out", str(out)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert re.match(f"error: .*{message}", shown.err)
    assert not out.exists()


def test_a_folder_with_files_stays_as_it_is(tmp_path, capsys):
    (tmp_path / "index.csv").write_text("mine")
    (tmp_path / "file").touch()

    assert main(["hard", "--num", "1", "--out", str(tmp_path)]) == 2
    assert "must be a new or empty folder, got one with files" in capsys.readouterr().err
    assert main(["hard", "--num", "1", "--out", str(tmp_path / "file")]) == 2
    shown = capsys.readouterr()
    assert "cannot be written" in shown.err
    assert shown.out == ""
    assert (tmp_path / "index.csv").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "index.csv"]


def test_help_names_every_suite_and_flag_and_its_examples_run(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    shown = capsys.readouterr().out
    monkeypatch.chdir(tmp_path)

    assert end.value.code == 0
    for name in NAMES:
        assert f"\n  {name} " in shown
    for field in dataclasses.fields(Config):
        assert f"  --{field.name} " in shown
    examples = re.findall(r"^  python -m scenarios.suites (.*)$", shown, re.M)
    assert len(examples) == 2
    for example in examples:
        assert main(shlex.split(example)) == 0
    assert len(list((tmp_path / "eval_static").iterdir())) == 21
