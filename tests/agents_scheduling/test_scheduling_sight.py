"""Parts of the observation by name, against what they are about; and rules that read them."""

import numpy as np
import pytest
from small_tasks import NUM_EPOCHS, few

from agents.scheduling.env import seeded_batch
from agents.scheduling.playing import at_random, holding, keeping, over_horizon, play
from agents.scheduling.setting import steps_s
from agents.scheduling.task import FIRST_KNOWN, Described
from des import migration_s

SIZE, NUM_LINKS, DRAW = 4, 12, 3


def seen(task, observation):
    return {name: observation[part] for name, part in task.observing.parts.items()}


def test_parts_are_as_documented():
    lengths = few().observing.lengths

    assert [lengths[name] for name in ("link_bandwidth", "link_latency", "link_held")] == [12] * 3
    assert lengths["known_step"] == lengths["change"] == 3
    assert sum(lengths.values()) == few().observing.size == 75


def test_links_and_loads_are_seen_as_they_are():
    task = few()
    batch = seeded_batch(task, 1, 0)
    found = [batch.reset([DRAW])[0]]
    keep = np.zeros((1, len(task.action.sizes)), dtype=np.int64)
    found += [batch.step(keep, resets=False).observations[0] for _ in range(NUM_EPOCHS - 1)]
    world, base = task.setting.world, task.setting.world.topology

    for epoch, observation in enumerate(found):
        now, sight = world.epoch_topology(DRAW, epoch), seen(task, observation)
        for name, field in (
            ("link_bandwidth", "bandwidth_bytes_per_s"),
            ("link_latency", "latency_s"),
        ):
            ratios = [
                getattr(one, field) / getattr(other, field)
                for one, other in zip(now.links, base.links, strict=True)
            ]
            np.testing.assert_allclose(sight[name], np.log(ratios), atol=1e-6)
        speeds = [
            one.attainable_fraction / other.attainable_fraction
            for one, other in zip(now.domains, base.domains, strict=True)
        ]
        np.testing.assert_allclose(sight["domain_speed"], np.log(speeds), rtol=1e-5)
        held = np.log1p(epoch) / np.log1p(NUM_EPOCHS)
        np.testing.assert_allclose(sight["domain_held"], held, rtol=1e-5)  # loads hold for 8 epochs
        np.testing.assert_allclose(sight["left"], 1.0 - epoch / NUM_EPOCHS, rtol=1e-6)
        assert sight["is_first"] == (epoch == 0)


def test_the_plan_in_force_is_seen_by_domain():
    task = few()
    batch = seeded_batch(task, 1, 0)
    batch.reset([DRAW])
    groups = Described(((2, 0), (3,)), (1.0,) * SIZE, schedule=1, mode=0)
    step = batch.step(task.action.encoded(groups)[np.newaxis])
    sight, plan = seen(task, step.observations[0]), batch.plans[0].plan
    shares = np.array(plan.shares) / task.setting.workload.num_microbatches
    layers = plan.placement.domain_of_layer

    assert batch.plans[0].family == "hybrid"
    np.testing.assert_allclose(sight["group"], [0.25, 0.0, 0.25, 0.5])
    np.testing.assert_allclose(sight["place"], [0.5, 0.0, 0.25, 0.25])
    np.testing.assert_allclose(
        sight["layer_share"], [layers.count(0) / 32, 0, layers.count(2) / 32, 1]
    )
    np.testing.assert_allclose(sight["batch_share"], [shares[0], 0.0, shares[0], shares[1]])
    assert sight["schedule"].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_known_plans_are_seen_with_their_steps_and_changes():
    task = few()
    setting, batch = task.setting, seeded_batch(task, 1, 0)
    batch.reset([DRAW])
    action = np.zeros((1, len(task.action.sizes)), dtype=np.int64)
    action[0, 0] = FIRST_KNOWN + 1
    sight = seen(task, batch.step(action).observations[0])
    now = setting.world.epoch_topology(DRAW, 1)
    networks = setting.networks([now] * len(task.known))
    times = steps_s(setting, networks, task.known)
    changes_s = [
        migration_s(now, setting.workload, task.known[1].plan, one.plan) for one in task.known
    ]

    np.testing.assert_allclose(sight["own_step"], np.log(times[1] / task.reference_s), rtol=1e-5)
    np.testing.assert_allclose(sight["known_step"], np.log(times / times[1]), atol=1e-6)
    np.testing.assert_allclose(
        sight["change"], np.log1p(np.array(changes_s) / setting.world.epoch_s), rtol=1e-5
    )


def test_rules_stand_in_the_order_that_they_must():
    """Best of the moment with free moves is quickest; the start plan held is a known plan held."""
    task, draws = few(), range(8)
    kept, held, drawn, moved, greedy = (
        play(task, act, draws)
        for act in (
            keeping(task),
            holding(task, 0),
            at_random(task, 0),
            over_horizon(task, 4.0),
            over_horizon(task, float("inf")),
        )
    )

    np.testing.assert_array_equal(kept.total_s, held.total_s)
    assert kept.num_moves.sum() == 0.0
    assert moved.total_s.mean() < kept.total_s.mean() < drawn.total_s.mean()
    assert greedy.num_moves.sum() >= moved.num_moves.sum()


@pytest.mark.parametrize("number", [0, 2])
def test_known_plans_are_different_and_the_start_plan_is_the_quickest_at_base(number):
    task = few()
    base = task.setting.networks([task.setting.world.topology] * len(task.known))
    times_s = steps_s(task.setting, base, task.known)

    assert len(set(task.known)) == len(task.known) == 3
    assert times_s[number] >= times_s[0]
