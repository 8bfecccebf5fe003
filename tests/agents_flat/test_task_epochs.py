"""Epochs of a task: costs of a change, iterations, and seeds of episodes."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hand_tasks import ASYMMETRIC, ASYMMETRIC_S, SPLIT, TOGETHER, task
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import placements, topologies, unit_workload, workloads

from agents.flat.episode import Episode
from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld, GivenWorld, path_matrices
from des import Placement, UniformLaw, simulate_epoch
from des.base.random_numbers import derive_seed
from des.plan.replacement import Replacement

COSTLY = Replacement(restart_s=3.0)
"""A layer has one parameter, so 16 bytes of state."""


def test_metrics_of_several_iterations_after_a_change_by_hand():
    """The second layer goes to B: 16 / 8 s + 0.25 s, and 3 s of restart; then 4 x 12.25 s."""
    given = task(iterations_per_epoch=4, replacement=COSTLY)
    epoch = given.run_epoch(ASYMMETRIC, SPLIT, TOGETHER)

    duration_s = 5.25 + 4 * ASYMMETRIC_S
    metrics = given.metrics(epoch, given.baseline(ASYMMETRIC))
    assert metrics == pytest.approx(
        {
            "iteration_time_s": duration_s / 4,
            "utilisation": 4 * 12 / (2 * duration_s),
            "communication_cost_bytes": (4 * 16 + 16) / 4,
            "bubble_fraction": 1 - 4 * 12 / (2 * duration_s),
            "tokens_per_s": 4 * 2 / duration_s,
            "num_stages": 2,
            "fits_memory": 1,
            "memory_overflow_fraction": 0,
            "migration_s": 5.25,
            "moved_bytes": 16,
            "baseline_iteration_time_s": ASYMMETRIC_S,
            "baseline_communication_cost_bytes": 16,
        }
    )
    base_s = ASYMMETRIC_S
    expected = (
        0.4 * (base_s - duration_s / 4) / base_s + 0.3 * 48 / (2 * duration_s) - 0.3 * 20 / 16
    )
    assert given.reward(metrics) == pytest.approx(expected)


def test_the_way_from_the_even_split_is_paid_for_and_staying_is_free():
    """To A alone: the layer of B comes back at 2 bytes/s, 8 s + 0.5 s, and 3 s of restart."""
    episode = Episode(task(replacement=COSTLY, iterations_per_epoch=2))
    episode.begin(0)
    steps = [episode.step(placement) for placement in (TOGETHER, TOGETHER, SPLIT, SPLIT, TOGETHER)]

    assert [step.metrics["migration_s"] for step in steps] == [11.5, 0.0, 5.25, 0.0, 11.5]
    assert [step.metrics["moved_bytes"] for step in steps] == [16.0, 0.0, 16.0, 0.0, 16.0]
    assert [step.metrics["iteration_time_s"] for step in steps] == [
        12.0 + 11.5 / 2, 12.0, ASYMMETRIC_S + 5.25 / 2, ASYMMETRIC_S, 12.0 + 11.5 / 2
    ]  # fmt: skip
    resumed = Episode(episode.task)
    resumed.resume(0, 4, SPLIT)
    again = resumed.step(TOGETHER)
    assert (again.metrics, again.reward) == (steps[4].metrics, steps[4].reward)


def test_a_restart_alone_moves_no_bytes():
    given = task(replacement=Replacement(restart_s=3.0, pays_bytes=False))
    episode = Episode(given)
    episode.begin(0)
    metrics = episode.step(TOGETHER).metrics

    assert (metrics["migration_s"], metrics["moved_bytes"]) == (3.0, 0.0)
    assert metrics["communication_cost_bytes"] == 0.0
    assert metrics["iteration_time_s"] == 15.0


@settings(max_examples=examples(50), deadline=None)
@given(topology=topologies(), workload=workloads(), seed=st.integers(0, 2**63 - 1), draw=st.data())
def test_one_iteration_and_free_changes_are_a_single_simulation(topology, workload, seed, draw):
    """To the last bit, whatever was placed before."""
    given = PlacementTask(world=GivenWorld(topology=topology), workload=workload)
    drawn = placements(topology.num_domains, workload.num_layers)
    placement = draw.draw(drawn)
    episode = Episode(given)
    episode.resume(seed, 3, draw.draw(drawn))
    result = given.simulate(episode.topology, placement)
    metrics = episode.step(placement).metrics

    assert metrics["iteration_time_s"] == result.makespan_s
    assert metrics["utilisation"] == result.utilisation
    assert metrics["communication_cost_bytes"] == result.communication_cost_bytes
    assert metrics["bubble_fraction"] == result.bubble_fraction
    assert metrics["tokens_per_s"] == workload.tokens_per_iteration / result.makespan_s
    assert metrics["fits_memory"] == float(result.fits_memory)
    assert metrics["migration_s"] == metrics["moved_bytes"] == 0.0


@settings(max_examples=examples(30), deadline=None)
@given(
    topology=topologies(min_domains=2),
    workload=workloads(),
    seed=st.integers(0, 2**63 - 1),
    num_iterations=st.integers(1, 3),
    draw=st.data(),
)
def test_an_episode_is_its_epochs_one_after_the_other(
    topology, workload, seed, num_iterations, draw
):
    """Each on the links of its own seed, from the placement of the one before."""
    given = PlacementTask(
        world=GivenWorld(topology=topology),
        workload=workload,
        iterations_per_epoch=num_iterations,
        replacement=COSTLY,
    )
    chosen = [draw.draw(placements(topology.num_domains, workload.num_layers)) for _ in range(3)]
    episode = Episode(given)
    episode.begin(seed)
    for index, (last, placement) in enumerate(pairwise([given.uniform_placement, *chosen])):
        epoch = simulate_epoch(
            topology.epoch_of(int(derive_seed(seed, 1 + index, 0))),
            workload,
            given.plan(placement),
            num_iterations=num_iterations,
            previous=given.plan(last),
            restart_s=3.0,
        )
        assert episode.step(placement).metrics == given.metrics(epoch, episode.baseline)
        assert episode.last_result() == epoch.iterations[-1]


def test_tasks_of_other_epochs_and_costs_have_other_fingerprints():
    tasks = [
        task(),
        task(iterations_per_epoch=2),
        task(replacement=Replacement()),
        task(replacement=Replacement(restart_s=1.0)),
        task(replacement=Replacement(pays_bytes=False)),
    ]

    assert len({one.fingerprint() for one in tasks}) == len(tasks)
    assert task().fingerprint() == task().fingerprint()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"restart_s": -1.0}, "replacement: restart_s must be finite and not negative, got -1.0"),
        ({"restart_s": float("nan")}, "replacement: restart_s must be finite and not negative"),
        ({"pays_bytes": 1}, "replacement: pays_bytes must be True or False, got 1"),
    ],
)
def test_costs_of_a_change_out_of_range_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Replacement(**fields)


def test_epoch_of_an_episode_follows_from_the_seed_and_its_number_alone():
    """Resuming at an epoch gives what playing up to it gives, whatever was placed before."""
    given = PlacementTask(
        world=DrawnWorld(
            num_domains=2, dynamics=UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
        ),
        workload=unit_workload([(1e15, 1e15)] * 4, num_microbatches=2),
    )
    played, resumed = Episode(given), Episode(given)
    first = played.begin(3)
    last = Placement(domain_of_layer=(1, 0, 0, 0))
    for placement in (given.uniform_placement, last):
        observation = played.step(placement).observation

    np.testing.assert_array_equal(resumed.resume(3, 2, last), observation)
    assert resumed.baseline == played.baseline
    assert resumed.topology == played.topology
    assert not np.array_equal(first[:8], observation[:8])
    assert not np.array_equal(Episode(given).begin(4)[:8], first[:8])


def test_worlds_and_epochs_have_seeds_derived_from_that_of_the_episode():
    """The world's is number 0, those of the epochs follow: recorded figures rest on it."""
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    source = DrawnWorld(num_domains=3, dynamics=law)
    given = PlacementTask(world=source, workload=unit_workload([(1, 1)] * 4, num_microbatches=2))
    episode = Episode(given)
    episode.begin(41)

    base = source.world(int(derive_seed(41, 0, 0)))
    assert episode.base_world == base
    for epoch in range(3):
        assert episode.topology == base.epoch_of(int(derive_seed(41, 1 + epoch, 0)))
        episode.step(given.uniform_placement)


@pytest.mark.parametrize("seed", [-1, 2**63, (1,), 0.0])
def test_an_episode_of_an_impossible_seed_is_refused(seed):
    with pytest.raises(ValueError, match=r"episode: seed must be a whole number within \[0, 2"):
        Episode(task()).begin(seed)


def test_links_of_an_epoch_move_around_the_base_of_the_episode():
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    base = dataclasses.replace(ASYMMETRIC, dynamics=law)
    episode = Episode(task(base))
    episode.begin(11)
    bandwidths, latencies = [], []
    for _ in range(200):
        bandwidth, latency = path_matrices(episode.topology)
        bandwidths.append([bandwidth[0, 1] / 8, bandwidth[1, 0] / 2])
        latencies.append([latency[0, 1] / 0.25, latency[1, 0] / 0.5])
        episode.step(TOGETHER)

    for factors, swing in ((np.array(bandwidths), 0.3), (np.array(latencies), 0.2)):
        assert np.abs(factors - 1).max() <= swing * (1 + 1e-12)
        assert np.abs(factors - 1).max() > 0.95 * swing
        # 4 deviations of the mean of 200 uniform numbers.
        assert np.abs(factors.mean(axis=0) - 1).max() < 4 * swing / np.sqrt(3 * 200)


def test_last_result_before_the_first_step_is_the_uniform_plan():
    given = task()
    episode = Episode(given)
    episode.begin(0)
    assert episode.last_result() == given.simulate(ASYMMETRIC, SPLIT)

    episode.step(TOGETHER)
    assert episode.last_result() == given.simulate(ASYMMETRIC, TOGETHER)
