"""Sketches judged as the simulator does, the plan policy's training, and its files."""

import dataclasses

import numpy as np
import pytest
import torch

from agents.hi_ppo.plans.plan_checkpoint import load_plan_policy, plan_policy_payload
from agents.hi_ppo.plans.plan_config import PlanConfig
from agents.hi_ppo.plans.plan_proposals import proposing_groups
from agents.hi_ppo.plans.plan_training import PlanTrainer
from agents.hi_ppo.plans.plan_worlds import looked_ahead, plan_world
from agents.hi_ppo.plans.simple_proposals import neighbour_groups, random_groups
from agents.hi_ppo.plans.sketch_judge import SKETCH_SCHEDULES
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from des import Placement, Plan, PlaneWorlds, build_workload, simulate
from scenarios.train.plan_networks import plan_networks

SMALL = PlanConfig(
    num_updates=4, samples_per_network=4, batches=((8, 4),), look_ahead_budget=8, num_neighbours=4
)


def plane_world(num_domains, seed=0, **domain):
    worlds = PlaneWorlds(num_domains=num_domains, mean_bandwidth_bytes_per_s=1e9)
    topology = worlds.draw(np.random.default_rng(seed)).at_start()
    domains = tuple(dataclasses.replace(one, **domain) for one in topology.domains)
    topology = dataclasses.replace(topology, domains=domains)
    return plan_world(topology, topology, build_workload("llama2_7b", num_microbatches=8)), topology


def test_one_group_takes_what_the_simulator_says():
    world, topology = plane_world(3, gpu_memory_bytes=288e9)
    workload = world.judge.workload
    (times_s,) = world.sketches.step_times_s([((2, 0),)])
    scored = world.judge.scored([(2, 0)], [workload.num_microbatches])
    for number, schedule in enumerate(SKETCH_SCHEDULES):
        plan = Plan(placement=world.judge.placement(scored.plans, number), schedule=schedule)
        assert times_s[number] == simulate(topology, workload, plan).makespan_s


def test_two_equal_copies_take_half_the_microbatches_and_a_ring():
    world, topology = plane_world(2, gpu_memory_bytes=288e9)
    first, second = topology.domains
    links = tuple(
        dataclasses.replace(link, bandwidth_bytes_per_s=1e9, latency_s=1e-3)
        for link in topology.links
    )
    equal = (first, dataclasses.replace(first, name=second.name))
    topology = dataclasses.replace(topology, domains=equal, links=links)
    world = plan_world(topology, topology, world.judge.workload)
    (alone_s, both_s) = world.sketches.step_times_s([((0,),), ((0,), (1,))])
    workload = world.judge.workload
    half = Plan(placement=Placement.contiguous([0], [workload.num_layers]))
    half_s = simulate(topology, dataclasses.replace(workload, num_microbatches=4), half).makespan_s
    ring_bytes = workload.gradient_bytes * sum(workload.num_parameters)
    ring_s = ring_bytes / 1e9 + 2 * 1e-3
    assert both_s.min() == pytest.approx(half_s + ring_s, rel=1e-3)
    assert np.isfinite(alone_s).all()


def test_groups_that_do_not_fit_cost_more_than_any_that_do():
    world, _ = plane_world(3, gpu_memory_bytes=8e9)
    alone, together = world.costs([((0,),), ((0, 1, 2),)])
    assert (alone == 8.0).all()
    assert together.min() < 6.0


def test_looking_ahead_is_never_worse_than_where_it_begins():
    world, _ = plane_world(6, seed=3, gpu_memory_bytes=288e9)
    rng = np.random.default_rng(0)
    begun = [*random_groups(world, 8, rng), *neighbour_groups(world, 8, rng)]
    least = float(world.costs(begun).min())
    found = looked_ahead(world, begun, budget=128, rng=rng)
    groups, cost = next(iter(found.items()))
    assert cost == min(found.values()) == world.costs([groups]).min() <= least


def trained(trainer: PlanTrainer, num_updates: int) -> list:
    """Make updates, and return their reports."""
    return [trainer.step() for _ in range(num_updates)]


def test_a_training_continues_to_the_same_weights():
    whole = PlanTrainer(plan_networks(0), seed=5, config=SMALL)
    trained(whole, SMALL.num_updates)
    first = PlanTrainer(plan_networks(0), seed=5, config=SMALL)
    trained(first, 2)
    second = PlanTrainer(plan_networks(0), seed=5, config=SMALL)
    second.load_state(first.state(), source="memory")
    trained(second, SMALL.num_updates - 2)
    for name, weights in whole.policy.state_dict().items():
        assert torch.equal(weights, second.policy.state_dict()[name]), name


def test_training_on_one_network_finds_its_best_groups():
    world, topology = plane_world(4, seed=1, gpu_memory_bytes=288e9)
    workload = world.judge.workload
    config = dataclasses.replace(SMALL, num_updates=40, samples_per_network=16)

    def networks():
        while True:
            yield topology, topology, workload

    trainer = PlanTrainer(networks(), seed=0, config=config)
    reports = trained(trainer, config.num_updates)
    assert reports[-1].mean_cost < reports[0].mean_cost - 0.1
    (likeliest,) = proposing_groups(trainer.policy)(world, 1, np.random.default_rng(0))
    found = looked_ahead(world, [likeliest], budget=500, rng=np.random.default_rng(1))
    assert world.costs([likeliest]).min() <= min(found.values()) + 0.05


def test_policies_are_read_as_they_were_written_and_others_refused(tmp_path):
    policy = PlanTrainer(plan_networks(0), seed=1, config=SMALL).policy
    path = tmp_path / "plans.pt"
    save_checkpoint(path, plan_policy_payload(policy))
    again = load_plan_policy(path).state_dict()
    assert all(torch.equal(value, again[name]) for name, value in policy.state_dict().items())
    save_checkpoint(path, {**load_checkpoint(path), "kind": "placement_policy"})
    with pytest.raises(CheckpointError, match="kind must be 'plan_policy', got 'placement_policy'"):
        load_plan_policy(path)
