"""Environments take every law of moving links: an episode is one course, and epochs hold links."""

import dataclasses
from collections import deque
from itertools import pairwise

import numpy as np
import pytest
from every_law import LAWS, UP_AND_DOWN, every_law, replay_of
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import placements, topologies, unit_workload, workloads, world
from test_batch_equality import (
    SEED,
    TASKS,
    assert_equals_episodes,
    assert_state_is_all,
    mesh,
    tasks,
    under,
)

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.compiled_batch import is_compilable
from agents.flat.episode import Episode
from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld, GivenWorld
from des import DYNAMICS, LinkState, Movement, Topology, UniformLaw, read_topology, simulate_epoch
from des.base.random_numbers import derive_seed
from des.dynamics import MarkovModulated
from des.plan.replacement import Replacement
from des.world.transport import Transport

PAIR = world("AB", {"AB": (2.0, 0.25), "BA": (4.0, 0.5)})
SMALL_JOB = unit_workload([(1, 2)] * 4, num_microbatches=2, message_bytes=4.0)


def pair_task(law: object, **changes: object) -> PlacementTask:
    """Four layers on two domains whose links move by a law."""
    source = GivenWorld(topology=dataclasses.replace(PAIR, dynamics=law))
    return PlacementTask(world=source, workload=SMALL_JOB, **changes)


# The batch and episodes on the readable engine.


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("law", LAWS)
def test_batch_equals_episodes_under_every_law(name, law):
    task = under(
        TASKS[name],
        LAWS[law],
        epochs_per_episode=3,
        iterations_per_epoch=2,
        replacement=Replacement(restart_s=5.0),
    )
    assert is_compilable(task)
    num_envs = 19 if law == "own" else 4  # more than run side by side, or fewer
    assert_equals_episodes(task, num_envs=num_envs, num_steps=4, num_workers=2)


@pytest.mark.parametrize("law", ["wandering", "fast and slow", "own"])
@pytest.mark.parametrize(
    "fields",
    [
        {"sharing": "fair"},
        {"sharing": "none"},
        {"endpoints": "blocking"},
        {"half_duplex": True},
        {"window_bytes": 4e6, "flows_per_pair": 4},
    ],
    ids=str,
)
def test_batch_equals_episodes_under_every_law_and_transport(law, fields):
    topology = mesh(3, LAWS[law]).topology
    source = GivenWorld(topology=dataclasses.replace(topology, transport=Transport(**fields)))
    assert_equals_episodes(dataclasses.replace(TASKS["layers"], world=source))


@settings(max_examples=examples(40), deadline=None)
@given(task=tasks(every_law), num_workers=st.integers(1, 3))
def test_batch_equals_episodes_whatever_the_law_and_the_task(task, num_workers):
    assert is_compilable(task)
    assert_equals_episodes(task, num_steps=4, num_workers=num_workers)


# Epochs advance along the course.


def test_an_epoch_holds_the_links_that_it_finds():
    """Links change after 5 s, in the first epoch, which does not see it; the second one does."""
    law = replay_of(PAIR.links, [0.0, 5.0], [1.0, 0.5])
    slower = PAIR.scaled(np.array([0.5, 0.5]), np.array([1.5, 1.5]))
    task = pair_task(law, iterations_per_epoch=2)
    before, after = (task.simulate(each, task.uniform_placement) for each in (PAIR, slower))
    assert 5.0 < before.makespan_s < after.makespan_s

    episode = Episode(task)
    episode.begin(0)
    times_s = [episode.step(task.uniform_placement).metrics["iteration_time_s"] for _ in range(2)]
    assert times_s == [before.makespan_s, after.makespan_s]
    assert episode.start_s == 2 * before.makespan_s + 2 * after.makespan_s
    assert_equals_episodes(task)


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**63 - 1), num_iterations=st.integers(1, 3))
def test_an_episode_follows_one_course_whose_epochs_begin_where_the_last_has_ended(
    data, seed, num_iterations
):
    topology = data.draw(topologies(min_domains=2))
    law = data.draw(every_law(topology.links).filter(lambda law: not isinstance(law, UniformLaw)))
    topology = dataclasses.replace(topology, dynamics=law)
    task = PlacementTask(
        world=GivenWorld(topology=topology),
        workload=data.draw(workloads()),
        iterations_per_epoch=num_iterations,
        replacement=Replacement(restart_s=3.0),
    )
    chosen = data.draw(
        st.lists(placements(topology.num_domains, task.workload.num_layers), min_size=3, max_size=3)
    )
    episode, start_s = Episode(task), 0.0
    episode.begin(seed)
    for last, placement in pairwise([task.uniform_placement, *chosen]):
        movement = Movement(law=law, seed=int(derive_seed(seed, 0, 1)), start_s=start_s)
        epoch = simulate_epoch(
            dataclasses.replace(topology, movement=movement).at_start(),
            task.workload,
            task.plan(placement),
            num_iterations=num_iterations,
            previous=task.plan(last),
            restart_s=3.0,
        )
        assert episode.start_s == start_s
        assert episode.step(placement).metrics == task.metrics(epoch, episode.baseline)
        start_s += epoch.duration_s


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("law", ["wandering", "fast and slow", "own", "uniform together"])
def test_a_batch_continues_in_the_middle_of_a_course(name, law):
    assert_state_is_all(
        under(TASKS[name], LAWS[law], epochs_per_episode=3, replacement=Replacement())
    )


@pytest.mark.parametrize("start_s", [-1.0, float("nan"), 2e10, "0"])
def test_a_state_of_an_impossible_time_is_refused(start_s):
    batch = BatchedPlacementEnv(pair_task(LAWS["own"]), num_envs=1, seed=SEED)
    batch.reset()
    state = batch.state()
    state["seats"][0]["start_s"] = start_s

    with pytest.raises(ValueError, match=r"state must be of a start_s from 0 to 1e\+10, got"):
        batch.load_state(state)


def test_a_state_under_the_uniform_law_has_no_time():
    batch = BatchedPlacementEnv(pair_task(LAWS["uniform"]), num_envs=1, seed=SEED)
    batch.reset()
    batch.step(np.zeros((1, 4), dtype=np.int64))

    assert "start_s" not in batch.state()["seats"][0]


# What is seen.


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**63 - 1))
def test_an_observation_is_within_bounds_under_every_law(data, seed):
    topology = data.draw(topologies())
    law = data.draw(every_law(topology.links))
    source = GivenWorld(topology=dataclasses.replace(topology, dynamics=law))
    task = PlacementTask(world=source, workload=unit_workload([(1, 1)] * 4, num_microbatches=1))

    episode = Episode(task)
    for observation in (episode.begin(seed), episode.step(task.uniform_placement).observation):
        assert np.all((observation >= 0.0) & (observation <= 1.0))


def test_figures_that_a_trace_leads_to_bound_what_is_seen_in_drawn_worlds():
    """Its factors are the higher the lower the links are that it replaces."""
    links = DrawnWorld(num_domains=2, dynamics=DYNAMICS["steady"]).world(0).links
    law = replay_of(links, [0.0], [1.5])
    task = PlacementTask(
        world=DrawnWorld(num_domains=2, dynamics=law),
        workload=unit_workload([(1e15, 1e15)] * 4, num_microbatches=1),
    )
    highest = max(series.latencies_s[0] for series in law.series)
    assert task.observation_scales[1] == pytest.approx(highest)
    assert_equals_episodes(task)


# Courses that end.


def test_a_trace_that_ends_is_an_error_that_names_it_and_may_be_held_instead():
    law = replay_of(PAIR.links, [0.0, 5.0, 40.0], [1.0, 0.5, 1.0], holds_last=False)
    task = pair_task(law)
    message = (
        r"trace: link [AB]->[AB]: trace must cover the run, got figures until 40 s where .* s is"
    )
    episode, batch = Episode(task), BatchedPlacementEnv(task, num_envs=2, seed=SEED)
    episode.begin(0)
    batch.reset()

    with pytest.raises(ValueError, match=message):
        deque(episode.step(task.uniform_placement) for _ in range(9))
    with pytest.raises(ValueError, match=message):
        deque(batch.step(np.array([[0, 0, 1, 1]] * 2)) for _ in range(9))
    assert_equals_episodes(pair_task(dataclasses.replace(law, holds_last=True)))


def test_a_law_under_which_a_link_may_be_down_is_refused():
    """An epoch that holds such a link would never end."""
    message = r"dynamics must leave every link some bandwidth, .*; link A->B may be down under"

    for law in (UP_AND_DOWN, replay_of(PAIR.links, [0.0, 5.0, 9.0], [1.0, 0.5, 0.0])):
        with pytest.raises(ValueError, match=message):
            pair_task(law)


def test_epochs_end_three_centuries_from_the_start():
    """An hour's work takes a century and a half; the third epoch would begin too late."""
    law = MarkovModulated(
        states=(LinkState(name="up", bandwidth_factor=1.0, mean_dwell_s=float("inf")),),
        starts_in="up",
    )
    task = dataclasses.replace(
        pair_task(law), workload=unit_workload([(1e9, 1e9)] * 4, num_microbatches=1)
    )
    episode, batch = Episode(task), BatchedPlacementEnv(task, num_envs=1, seed=SEED)
    episode.begin(0)
    batch.reset()

    message = "movement: start_s must be from 0 to 1e\\+10, got"
    with pytest.raises(ValueError, match=message):
        deque(episode.step(task.codec.decode((0, 0, 0, 0))) for _ in range(3))
    with pytest.raises(ValueError, match=message):
        deque(batch.step(np.zeros((1, 4), dtype=np.int64)) for _ in range(3))


# Worlds.


@pytest.mark.parametrize("name", sorted(DYNAMICS))
def test_every_preset_is_taken(name):
    topology = dataclasses.replace(read_topology("east_central_west"), dynamics=DYNAMICS[name])

    assert GivenWorld(topology=topology).dynamics == DYNAMICS[name]


def test_a_topology_that_is_moving_already_is_refused():
    moving: Topology = dataclasses.replace(PAIR, movement=Movement(law=UP_AND_DOWN, seed=1))

    with pytest.raises(ValueError, match="each episode draws its own movement; got Movement"):
        GivenWorld(topology=moving)
