"""Observations of worlds and links, against cases worked out by hand, and what a task refuses."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hand_tasks import ASYMMETRIC, ASYMMETRIC_S, SPLIT, TOGETHER, reward, task
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
from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld, GivenWorld
from des import (
    Corrections,
    IterationResult,
    Movement,
    Plan,
    Topology,
    UniformLaw,
    Workload,
    simulate,
)

# Observations.


def test_observation_of_steady_links_by_hand():
    """Largest base bandwidth 8 bytes/s, largest base latency 0.5 s; inside: 1 byte/s and 0 s."""
    observation = task().observe(ASYMMETRIC, TOGETHER)

    assert observation.dtype == np.float32
    assert observation.tolist() == [1 / 8, 1, 1 / 4, 1 / 8, 0, 1 / 2, 1, 0, 1, 0]


def test_observation_of_moving_links_by_hand():
    """Scales are 8 x 1.25 = 10 bytes/s and 0.5 x 1.6 = 0.8 s; figures inside stay."""
    law = UniformLaw(bandwidth_fluctuation=0.25, latency_jitter=0.6)
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
    law = UniformLaw(bandwidth_fluctuation=0.25, latency_jitter=0.5)
    alone = Topology.of([unit_domain("A")], [], law)

    assert task(alone).observe(alone, TOGETHER) == pytest.approx([0.8, 0.0, 1.0])


def test_observation_is_of_the_links_at_the_start_of_a_moving_iteration():
    law = UniformLaw(bandwidth_fluctuation=0.25, latency_jitter=0.6, update_interval_s=1.0)
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
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.5, update_interval_s=60.0)
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
    law = UniformLaw(
        bandwidth_fluctuation=fluctuation, latency_jitter=0.9, update_interval_s=interval_s
    )
    given = PlacementTask(
        world=DrawnWorld(num_domains=num_domains, dynamics=law),
        workload=unit_workload([(1e15, 1e15)] * 4, num_microbatches=1),
    )
    observation = Episode(given).begin(seed)

    assert observation.min() >= 0
    assert observation.max() <= 1


def test_baseline_is_the_uniform_plan_on_the_base_links_however_they_move():
    law = UniformLaw(bandwidth_fluctuation=0.9, latency_jitter=0.9)
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
