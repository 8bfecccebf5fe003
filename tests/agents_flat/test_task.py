"""Observations and rewards, against hand-computed cases, and the simulator of the plans."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    ALLOWED_SCHEDULES,
    placements,
    plan,
    topologies,
    unit_domain,
    unit_workload,
    workloads,
    world,
)

from agents.flat.episode import Episode
from agents.flat.task import PlacementTask, RewardWeights
from agents.flat.worlds import DrawnWorld, GivenWorld, path_matrices
from des import (
    Corrections,
    Dynamics,
    IterationResult,
    Movement,
    Placement,
    Plan,
    Topology,
    Workload,
    simulate,
    simulate_epoch,
)
from des.base.random_numbers import derived_seed
from des.plan.replacement import Replacement

ASYMMETRIC = world("AB", {"AB": (8.0, 0.25), "BA": (2.0, 0.5)})
"""4 bytes take 0.5 s + 0.25 s from A to B, 2 s + 0.5 s back."""
ASYMMETRIC_S = 12.25
"""GPipe, a layer of 1 s + 2 s on each of A and B, two microbatches: see test_engine."""
SPLIT, TOGETHER = Placement(domain_of_layer=(0, 1)), Placement(domain_of_layer=(0, 0))


def task(topology: Topology = ASYMMETRIC, **changes: object) -> PlacementTask:
    """Two layers of 1 s forward and 2 s backward, two microbatches, messages of 4 bytes."""
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=2, message_bytes=4.0)
    fields = {"workload": workload, "schedule": "gpipe", **changes}
    return PlacementTask(world=GivenWorld(topology=topology), **fields)


def reward(given: PlacementTask, placement: Placement) -> float:
    """Reward of a placement on the base links, after the uniform one."""
    topology = given.world.world(0)
    epoch = given.run_epoch(topology, placement, given.uniform_placement)
    return given.reward(given.metrics(epoch, given.baseline(topology)))


# Observations.


def test_observation_of_steady_links_by_hand():
    """Largest base bandwidth 8 bytes/s, largest base latency 0.5 s; inside: 1 byte/s and 0 s."""
    observation = task().observe(ASYMMETRIC, TOGETHER)

    assert observation.dtype == np.float32
    assert observation.tolist() == [1 / 8, 1, 1 / 4, 1 / 8, 0, 1 / 2, 1, 0, 1, 0]


def test_observation_of_moving_links_by_hand():
    """Scales are 8 x 1.25 = 10 bytes/s and 0.5 x 1.6 = 0.8 s; figures inside stay."""
    law = Dynamics(bandwidth_fluctuation=0.25, latency_jitter=0.6)
    base = dataclasses.replace(ASYMMETRIC, dynamics=law)
    now = base.scaled(np.array([1.25, 0.75]), np.array([0.4, 1.6]))

    observation = task(base).observe(now, SPLIT)
    np.testing.assert_allclose(
        observation, [0.1, 1.0, 0.15, 0.1, 0, 0.125, 1.0, 0, 0.5, 0.5], rtol=1e-6
    )


def test_observation_over_several_hops_by_hand():
    """A->C: 1 / (1/2 + 1/2) = 1 byte/s, 0.75 s; C->A: 1 / (1/4 + 1/4) = 2 bytes/s, 2 s."""
    chain = world(
        "ABC", {"AB": (2.0, 0.25), "BA": (4.0, 0.5), "BC": (2.0, 0.5), "CB": (4.0, 1.5)}
    )  # fmt: skip

    observation = task(chain).observe(chain, SPLIT)
    assert observation.tolist() == [
        *(1 / 4, 1 / 2, 1 / 4, 1, 1 / 4, 1 / 2, 1 / 2, 1, 1 / 4),
        *(0, 1 / 8, 3 / 8, 1 / 4, 0, 1 / 4, 1, 3 / 4, 0),
        *(1 / 2, 1 / 2, 0),
    ]


def test_observation_of_a_single_domain_by_hand():
    law = Dynamics(bandwidth_fluctuation=0.25, latency_jitter=0.5)
    alone = Topology.of([unit_domain("A")], [], law)

    assert task(alone).observe(alone, TOGETHER) == pytest.approx([0.8, 0.0, 1.0])


def test_observation_is_of_the_links_at_the_start_of_a_moving_iteration():
    law = Dynamics(bandwidth_fluctuation=0.25, latency_jitter=0.6, update_interval_s=1.0)
    base = dataclasses.replace(ASYMMETRIC, dynamics=law)
    now = dataclasses.replace(base, movement=Movement(law=law, seed=3))

    bandwidth, latency = now.factors_at_start()
    observation = task(base).observe(now, SPLIT)
    np.testing.assert_allclose(observation[[1, 2]], [8, 2] * bandwidth / 10, rtol=1e-6)
    np.testing.assert_allclose(observation[[5, 6]], [0.25, 0.5] * latency / 0.8, rtol=1e-6)


def test_observation_follows_the_route_that_messages_take_in_a_moving_iteration():
    """A to D leads over B at base figures; C may be quicker at the start, but is not taken."""
    latencies = {"AB": 0.1, "BD": 0.1, "AC": 0.11, "CD": 0.11}
    links = {ends: (1.0, latency) for ends, latency in latencies.items()}
    links |= {ends[::-1]: figures for ends, figures in links.items()}
    law = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.5, update_interval_s=60.0)
    base = world("ABCD", links, dynamics=law)
    given = task(base)

    for seed in range(8):
        now = dataclasses.replace(base, movement=Movement(law=law, seed=seed))
        result = simulate(now, given.workload, plan(0, 3))
        start = now.at_start()
        taken = {transfer.link for transfer in result.transfers if transfer.kind == "F"}
        observed = given.observe(now, SPLIT)
        scale_s = given.world.largest_latency_s * (1 + law.latency_jitter)
        taken_s = sum(start.links[link].latency_s for link in taken)
        assert observed[16 + 3] * scale_s == pytest.approx(taken_s, rel=1e-6)


@settings(max_examples=examples(200), deadline=None)
@given(topology=topologies(), seed=st.integers(0, 2**32), draw=st.data())
def test_observation_is_always_within_bounds(topology, seed, draw):
    workload = unit_workload([(1, 1)] * 5, num_microbatches=1)
    given = PlacementTask(world=GivenWorld(topology=topology), workload=workload)
    last = draw.draw(placements(topology.num_domains, 5))

    observation = given.observe(topology.draw_epoch(np.random.default_rng(seed)), last)
    assert observation.shape == (given.observation_size,)
    assert observation.size == 2 * topology.num_domains**2 + topology.num_domains
    assert observation.min() >= 0
    assert observation.max() <= 1
    shares = observation[-topology.num_domains :] * 5
    np.testing.assert_allclose(
        shares, [last.domain_of_layer.count(domain) for domain in range(topology.num_domains)]
    )


@settings(max_examples=examples(30), deadline=None)
@given(
    num_domains=st.integers(1, 4),
    seed=st.integers(0, 2**32),
    fluctuation=st.floats(0.0, 0.95),
    interval_s=st.none() | st.floats(0.05, 20.0),
)
def test_observation_of_drawn_worlds_is_always_within_bounds(
    num_domains, seed, fluctuation, interval_s
):
    law = Dynamics(
        bandwidth_fluctuation=fluctuation, latency_jitter=0.9, update_interval_s=interval_s
    )
    given = PlacementTask(
        world=DrawnWorld(num_domains=num_domains, dynamics=law),
        workload=unit_workload([(1e15, 1e15)] * 4, num_microbatches=1),
    )
    observation = Episode(given).begin(seed)

    assert observation.min() >= 0
    assert observation.max() <= 1


# Rewards.


def test_reward_of_the_uniform_plan_by_hand():
    """No gain in time; U = 12 FLOPs / (2 FLOP/s x 12.25 s); communication as the base."""
    assert reward(task(), SPLIT) == pytest.approx(0.3 * 12 / (2 * ASYMMETRIC_S) - 0.3)


def test_reward_of_a_single_stage_by_hand():
    """12 s instead of 12.25 s, U = 12 / (2 x 12), no communication."""
    expected = 0.4 * (ASYMMETRIC_S - 12) / ASYMMETRIC_S + 0.3 * 0.5
    assert reward(task(), TOGETHER) == pytest.approx(expected)


def test_reward_of_twice_the_communication_by_hand():
    """Three layers over A, B, A have two borders; the uniform plan A, A, B has one."""
    workload = unit_workload([(1, 2)] * 3, num_microbatches=1, message_bytes=4.0)
    given = task(workload=workload)
    back_and_forth = Placement(domain_of_layer=(0, 1, 0))

    # Compute 3 x 3 s on the one microbatch; A->B 0.75 s, B->A 2.5 s, each way for each border.
    assert given.uniform_placement.domain_of_layer == (0, 0, 1)
    base_s, time_s = 9 + 0.75 + 2.5, 9 + 2 * (0.75 + 2.5)
    expected = 0.4 * (base_s - time_s) / base_s + 0.3 * 9 / (2 * time_s) - 0.3 * 2
    assert reward(given, back_and_forth) == pytest.approx(expected)


def test_reward_weights_are_the_callers():
    weights = RewardWeights(time=1.0, utilisation=0.0, communication=0.0)
    assert reward(task(weights=weights), TOGETHER) == pytest.approx(0.25 / ASYMMETRIC_S)

    weights = RewardWeights(time=0.0, utilisation=2.0, communication=5.0)
    expected = 2.0 * 12 / (2 * ASYMMETRIC_S) - 5.0
    assert reward(task(weights=weights), SPLIT) == pytest.approx(expected)


def test_reward_of_a_single_domain_has_no_term_for_communication():
    """Always the uniform plan, always busy: 0.4 x 0 + 0.3 x 1 - 0.3 x nothing."""
    assert reward(task(Topology.of([unit_domain("A")], [])), TOGETHER) == pytest.approx(0.3)


def test_reward_where_messages_are_empty_has_no_term_for_communication():
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=2, message_bytes=0.0)

    given = task(workload=workload)
    utilisation = given.simulate(ASYMMETRIC, SPLIT).utilisation
    assert reward(given, SPLIT) == pytest.approx(0.3 * utilisation)


def test_plan_over_memory_is_judged_as_if_it_fitted_then_fined():
    """Both layers hold 2 x 16 bytes of model state and 2 x 2 of activations: half over 24."""
    small = [unit_domain(name, memory_bytes=24.0) for name in "AB"]
    given = task(Topology.of(small, ASYMMETRIC.links))

    assert reward(given, SPLIT) == pytest.approx(reward(task(), SPLIT))  # 18 bytes each
    assert reward(given, TOGETHER) == pytest.approx(reward(task(), TOGETHER) - 1.5)


def test_metrics_by_hand():
    given = task()
    epoch = given.run_epoch(ASYMMETRIC, SPLIT, TOGETHER)

    assert given.metrics(epoch, given.baseline(ASYMMETRIC)) == pytest.approx(
        {
            "iteration_time_s": ASYMMETRIC_S,
            "utilisation": 12 / (2 * ASYMMETRIC_S),
            "communication_cost_bytes": 2 * 2 * 4,
            "bubble_fraction": 1 - 12 / (2 * ASYMMETRIC_S),
            "tokens_per_s": 2 / ASYMMETRIC_S,
            "num_stages": 2,
            "fits_memory": 1,
            "memory_overflow_fraction": 0,
            "migration_s": 0,
            "moved_bytes": 0,
            "baseline_iteration_time_s": ASYMMETRIC_S,
            "baseline_communication_cost_bytes": 16,
        }
    )


@pytest.mark.parametrize("replacement", [None, Replacement(), Replacement(restart_s=0)])
def test_all_metrics_are_floats_even_where_nothing_is_communicated(replacement):
    alone = Topology.of([unit_domain("A")], [])
    given = task(alone, replacement=replacement)
    epoch = given.run_epoch(alone, TOGETHER, TOGETHER)

    assert {type(value) for value in given.metrics(epoch, given.baseline(alone)).values()} == {
        float
    }


# Epochs of several iterations, and changes that cost something.

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
            topology.epoch_of(int(derived_seed(seed, 1 + index, 0))),
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


def test_baseline_is_the_uniform_plan_on_the_base_links_however_they_move():
    law = Dynamics(bandwidth_fluctuation=0.9, latency_jitter=0.9)
    given = task(dataclasses.replace(ASYMMETRIC, dynamics=law))
    episode = Episode(given)
    episode.begin(5)

    metrics = episode.step(SPLIT).metrics
    assert metrics["baseline_iteration_time_s"] == ASYMMETRIC_S
    assert metrics["baseline_communication_cost_bytes"] == 16
    assert metrics["iteration_time_s"] != ASYMMETRIC_S


# Who judges.


def test_the_given_simulator_judges_with_the_given_corrections():
    found = Corrections(compute_time_factor=2.0)
    asked = []

    def own(
        topology: Topology, workload: Workload, plan: Plan, corrections: Corrections
    ) -> IterationResult:
        asked.append((topology, workload, plan, corrections))
        return dataclasses.replace(
            simulate(topology, workload, plan, corrections), makespan_s=1000.0 + len(asked)
        )

    given = task(simulator=own, corrections=found)
    episode = Episode(given)
    episode.begin(0)
    now = episode.topology
    metrics = episode.step(TOGETHER).metrics

    assert metrics["baseline_iteration_time_s"] == 1001.0
    assert metrics["iteration_time_s"] == 1002.0
    assert asked == [
        (ASYMMETRIC, given.workload, plan(0, 1, schedule="gpipe"), found),
        (now, given.workload, plan(0, 0, schedule="gpipe"), found),
    ]


def test_any_callable_may_judge_even_one_without_a_hash():
    @dataclasses.dataclass
    class Counting:
        num_calls: int = 0

        def __call__(self, *case: object) -> IterationResult:
            self.num_calls += 1
            return simulate(*case)

    own = Counting()
    assert reward(task(simulator=own), SPLIT) == reward(task(), SPLIT)
    assert own.num_calls > 0


@settings(max_examples=examples(30), deadline=None)
@given(topology=topologies(), workload=workloads(), draw=st.data())
def test_corrections_reach_the_default_simulator(topology, workload, draw):
    placement = draw.draw(placements(topology.num_domains, workload.num_layers))
    found = Corrections(compute_time_factor=3.0, wan_latency_factor=2.0, message_overhead_s=0.5)
    given = PlacementTask(world=GivenWorld(topology=topology), workload=workload, corrections=found)

    assert given.simulate(topology, placement) == simulate(
        topology, workload, Plan(placement=placement), found
    )


# What is refused.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "zb"}, f"{ALLOWED_SCHEDULES} 'zb'"),
        ({"actions": "free"}, "actions: must be one of per_layer, order_split; got 'free'"),
        ({"epochs_per_episode": 0}, "epochs_per_episode must be a whole number .*, got 0"),
        ({"iterations_per_epoch": 0}, "iterations_per_epoch must be a whole number .*, got 0"),
        ({"epochs_per_episode": 1.5}, "epochs_per_episode must be a whole number .*, got 1.5"),
    ],
)
def test_task_out_of_range_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        task(**changes)


@pytest.mark.parametrize("field", ["time", "utilisation", "communication"])
@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_reward_weight_out_of_range_is_refused(field, weight):
    with pytest.raises(ValueError, match=f"reward weights: {field} must be finite and not neg"):
        RewardWeights(**{field: weight})


# Episodes.


def test_epoch_of_an_episode_follows_from_the_seed_and_its_number_alone():
    """Resuming at an epoch gives what playing up to it gives, whatever was placed before."""
    given = PlacementTask(
        world=DrawnWorld(
            num_domains=2, dynamics=Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
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
    law = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    source = DrawnWorld(num_domains=3, dynamics=law)
    given = PlacementTask(world=source, workload=unit_workload([(1, 1)] * 4, num_microbatches=2))
    episode = Episode(given)
    episode.begin(41)

    base = source.world(int(derived_seed(41, 0, 0)))
    assert episode.base_world == base
    for epoch in range(3):
        assert episode.topology == base.epoch_of(int(derived_seed(41, 1 + epoch, 0)))
        episode.step(given.uniform_placement)


@pytest.mark.parametrize("seed", [-1, 2**63, (1,), 0.0])
def test_an_episode_of_an_impossible_seed_is_refused(seed):
    with pytest.raises(ValueError, match=r"episode: seed must be a whole number within \[0, 2"):
        Episode(task()).begin(seed)


def test_links_of_an_epoch_move_around_the_base_of_the_episode():
    law = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
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
