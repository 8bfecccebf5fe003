"""Environments stepped by compiled code are episodes on the readable engine, to the last bit."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import dynamics
from strategies import STATIC_SCHEDULES, corrections, topologies, workloads

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.compiled_batch import is_compilable
from agents.flat.episode import Episode
from agents.flat.task import PlacementTask, RewardWeights
from agents.flat.worlds import DrawnWorld, GivenWorld
from agents.ppo.batch_step import BatchStep
from des import Corrections, Law, Link, Topology, UniformLaw, build_workload, read_topology
from des.base.random_numbers import derive_seed
from des.plan.replacement import Replacement
from des.world.hosts import HOSTS
from des.world.runtime import RUNTIMES
from des.world.transport import Transport
from des.worlds import EAST_CENTRAL_WEST

SEED = 7
LAW = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
"""Drawn once an epoch."""
MOVING = dataclasses.replace(LAW, update_interval_s=0.7)
JOB = build_workload("llama2_70b", num_layers=8, num_microbatches=4)


def assert_equals_episodes(
    task: PlacementTask, *, num_envs: int = 3, num_steps: int = 5, num_workers: int = 1
) -> list[BatchStep]:
    """Play random actions in the batch and in single episodes; returns the batch's steps."""
    rng = np.random.default_rng(num_envs + num_steps)
    sizes = task.codec.sizes
    with BatchedPlacementEnv(
        task, num_envs=num_envs, seed=SEED, num_workers=num_workers
    ) as environment:
        first = environment.reset()
        actions = [rng.integers(sizes, size=(num_envs, len(sizes))) for _ in range(num_steps)]
        steps = [environment.step(action) for action in actions]
    for position in range(num_envs):
        episode, number = Episode(task), 0
        seat_seed = derive_seed(SEED, position, 0)
        observation = episode.begin(int(derive_seed(seat_seed, number, 0)))
        np.testing.assert_array_equal(first[position], observation)
        for action, step in zip(actions, steps, strict=True):
            alone = episode.step(task.codec.decode(action[position].tolist()))
            observation = alone.observation
            np.testing.assert_array_equal(step.final_observations[position], observation)
            metrics = {name: values[position] for name, values in step.metrics.items()}
            assert metrics == alone.metrics
            assert step.rewards[position] == np.float32(alone.reward)
            assert step.truncated[position] == alone.truncated
            if alone.truncated:
                number += 1
                observation = episode.begin(int(derive_seed(seat_seed, number, 0)))
            np.testing.assert_array_equal(step.observations[position], observation)
    return steps


def mesh(num_domains: int, law: Law = LAW, *, hops: bool = False) -> GivenWorld:
    """Unequal domains, all joined directly, or each to the next one only."""
    model = read_topology(EAST_CENTRAL_WEST).domains[0]
    domains = [
        dataclasses.replace(model, name=f"domain{at}", num_gpus=8 + 4 * at)
        for at in range(num_domains)
    ]
    links = [
        Link(
            source=domains[source].name,
            target=domains[target].name,
            bandwidth_bytes_per_s=6e8 + 1e8 * source + 3e7 * target,
            latency_s=0.01 * (1 + source) + 0.002 * target,
        )
        for source in range(num_domains)
        for target in range(num_domains)
        if source != target and (not hops or abs(source - target) == 1)
    ]
    return GivenWorld(topology=Topology.of(domains, links, law))


TASKS = {
    "mesh": PlacementTask(world=mesh(4), workload=JOB, actions="order_split"),
    "chain": PlacementTask(world=mesh(4, hops=True), workload=JOB, actions="order_split"),
    "layers": PlacementTask(world=mesh(3), workload=JOB),
    "drawn": PlacementTask(
        world=DrawnWorld(num_domains=4, dynamics=LAW), workload=JOB, actions="order_split"
    ),
}
"""Base of the cases below."""


def under(task: PlacementTask, law: Law, **changes: object) -> PlacementTask:
    """The task in a world whose links move by a law."""
    world = task.world
    if isinstance(world, GivenWorld):
        moved = GivenWorld(topology=dataclasses.replace(world.topology, dynamics=law))
        return dataclasses.replace(task, world=moved, **changes)
    return dataclasses.replace(task, world=dataclasses.replace(world, dynamics=law), **changes)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("law", [LAW, MOVING], ids=["per epoch", "moving"])
@pytest.mark.parametrize("schedule", STATIC_SCHEDULES)
def test_batch_equals_episodes_under_every_schedule_and_law(name, law, schedule):
    task = under(TASKS[name], law, schedule=schedule, epochs_per_episode=3)

    assert is_compilable(task)
    steps = assert_equals_episodes(task, num_envs=5)
    fits = np.concatenate([step.metrics["fits_memory"] for step in steps])
    assert {*fits.tolist()} == {0.0, 1.0}


@pytest.mark.parametrize(
    "fields",
    [
        {"sharing": "fair"},
        {"sharing": "none"},
        {"endpoints": "one_in_flight"},
        {"endpoints": "blocking"},
        {"half_duplex": True},
        {"sharing": "fair", "half_duplex": True},
        {"window_bytes": 4e6, "flows_per_pair": 4},
    ],
    ids=str,
)
@pytest.mark.parametrize("law", [LAW, MOVING], ids=["per epoch", "moving"])
@pytest.mark.parametrize("hops", [False, True])
def test_batch_equals_episodes_under_every_transport(fields, law, hops):
    topology = dataclasses.replace(mesh(3, law, hops=hops).topology, transport=Transport(**fields))
    task = PlacementTask(
        world=GivenWorld(topology=topology),
        workload=JOB,
        actions="order_split",
        replacement=Replacement(),
    )
    assert_equals_episodes(task)


@pytest.mark.parametrize("pays_bytes", [False, True])
@pytest.mark.parametrize("num_iterations", [1, 3])
@pytest.mark.parametrize("law", [LAW, MOVING], ids=["per epoch", "moving"])
@pytest.mark.parametrize("name", TASKS)
def test_batch_equals_episodes_where_epochs_are_long_and_changes_cost(
    name, law, num_iterations, pays_bytes
):
    task = under(
        TASKS[name],
        law,
        iterations_per_epoch=num_iterations,
        replacement=Replacement(restart_s=5.0, pays_bytes=pays_bytes),
        epochs_per_episode=2,
    )
    steps = assert_equals_episodes(task)
    most_s = max(step.metrics["migration_s"].max() for step in steps)
    assert most_s > 5.0 if pays_bytes else most_s == 5.0


@pytest.mark.parametrize("name", TASKS)
def test_batch_equals_episodes_where_links_move_together(name):
    law = dataclasses.replace(LAW, correlation=0.5)
    task = under(TASKS[name], law)
    assert is_compilable(task)
    assert_equals_episodes(task)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnWorld(DrawnWorld):
    """A source of worlds that compiled code does not know."""


@pytest.mark.parametrize(
    "task",
    [
        dataclasses.replace(TASKS["layers"], schedule="greedy_2x"),
        dataclasses.replace(TASKS["drawn"], schedule="deep_1f1b", replacement=Replacement()),
        dataclasses.replace(TASKS["drawn"], world=OwnWorld(num_domains=3, dynamics=MOVING)),
    ],
    ids=["greedy", "deep_1f1b", "own world"],
)
def test_batch_of_what_cannot_be_compiled_equals_episodes_too(task):
    assert not is_compilable(task)
    assert_equals_episodes(task, num_workers=2)


@pytest.mark.parametrize("name", TASKS)
def test_state_holds_all_that_the_next_steps_depend_on(name):
    assert_state_is_all(under(TASKS[name], MOVING, epochs_per_episode=3, replacement=Replacement()))


def assert_state_is_all(task: PlacementTask) -> None:
    """A batch that is loaded from the state of another steps as that one does."""
    rng, sizes = np.random.default_rng(0), task.codec.sizes
    actions = [rng.integers(sizes, size=(4, len(sizes))) for _ in range(8)]
    played = BatchedPlacementEnv(task, num_envs=4, seed=SEED)
    played.reset()
    for action in actions[:4]:
        played.step(action)
    loaded = BatchedPlacementEnv(task, num_envs=4, seed=SEED, num_workers=2)
    loaded.load_state(played.state())

    for action in actions[4:]:
        one, other = played.step(action), loaded.step(action)
        np.testing.assert_array_equal(one.observations, other.observations)
        np.testing.assert_array_equal(one.rewards, other.rewards)
        for metric, values in one.metrics.items():
            np.testing.assert_array_equal(values, other.metrics[metric])


@st.composite
def tasks(
    draw: st.DrawFn, laws_of: Callable[[Sequence[Link]], st.SearchStrategy[Law]] | None = None
) -> PlacementTask:
    """Any task that compiled code can do; links move by the uniform law (default) or by any."""
    if draw(st.booleans()):
        topology = draw(topologies())
        sharing = draw(st.sampled_from(["fifo", "fair", "none"]))
        transport = Transport(
            sharing=sharing,
            endpoints=draw(st.sampled_from(["overlapped", "one_in_flight", "blocking"])),
            half_duplex=sharing != "none" and draw(st.booleans()),
            window_bytes=draw(st.none() | st.floats(1e4, 1e8)),
        )
        if draw(st.booleans()):
            topology = dataclasses.replace(topology, transport=transport)
        if laws_of is not None:
            topology = dataclasses.replace(topology, dynamics=draw(laws_of(topology.links)))
        source = GivenWorld(topology=topology)
    else:
        law = draw(dynamics() if laws_of is None else laws_of(()))
        source = DrawnWorld(num_domains=draw(st.integers(1, 4)), dynamics=law)
    encodings = ["per_layer", "order_split"][: 1 + (source.num_domains > 1)]
    costs = st.builds(Replacement, restart_s=st.floats(0.0, 60.0), pays_bytes=st.booleans())
    return PlacementTask(
        world=source,
        # Where messages weigh next to nothing a change of placement costs infinitely many of them.
        workload=dataclasses.replace(
            draw(workloads()), message_bytes=draw(st.just(0.0) | st.floats(1.0, 1e8))
        ),
        schedule=draw(st.sampled_from(STATIC_SCHEDULES)),
        actions=draw(st.sampled_from(encodings)),
        weights=draw(st.builds(RewardWeights, time=st.floats(0.0, 2.0))),
        epochs_per_episode=draw(st.integers(1, 3)),
        iterations_per_epoch=draw(st.integers(1, 2)),
        replacement=draw(st.none() | costs),
        corrections=draw(st.just(Corrections()) | corrections()),
    )


@pytest.mark.parametrize(
    "transport",
    [Transport(runtime=RUNTIMES["torch_early"]), Transport(hosts=HOSTS["linux_default"])],
)
def test_messages_that_wait_for_others_are_for_the_readable_engine(transport):
    topology = dataclasses.replace(TASKS["mesh"].world.topology, transport=transport)
    task = dataclasses.replace(TASKS["mesh"], world=GivenWorld(topology=topology))

    assert is_compilable(TASKS["mesh"])
    assert not is_compilable(task)


@settings(max_examples=examples(60), deadline=None)
@given(task=tasks(), num_workers=st.integers(1, 3))
def test_batch_equals_episodes_whatever_the_task(task, num_workers):
    assert is_compilable(task)
    assert_equals_episodes(task, num_steps=4, num_workers=num_workers)
