"""Bound plans drawn for launches: pipelines over sites, copies of them, DiLoCo between copies."""

import random
from dataclasses import replace
from itertools import permutations

from bound_cases import job, site, sites

from agents.decision.bound_plan import BoundPlan
from agents.judge.step_times import mean_step
from agents.search.bind import PlanBinder
from agents.trainers.table import trainer_named
from des import (
    DiLoCo,
    GradientExchange,
    Link,
    Placement,
    Plan,
    StreamingDiLoCo,
    Topology,
    Workload,
    build_workload,
    simulate,
)

SCHEDULES = {
    "megatron": ("1f1b", "interleaved_1f1b"),
    "torchtitan": ("1f1b", "gpipe", "zb_h1", "interleaved_1f1b"),
}
MODELS = {"megatron": ("llama2_7b", "mixtral_8x7b"), "torchtitan": ("llama2_7b",)}


def bound_of(
    plan: Plan,
    topology: Topology | None = None,
    workload: Workload | None = None,
    trainer: str = "megatron",
) -> BoundPlan:
    """A plan on the sites of `bound_cases`, if no others are given, with its simulated time."""
    topology, workload = topology or sites(), workload or job()
    return BoundPlan(
        topology=topology,
        workload=workload,
        plan=plan,
        trainer=trainer,
        step_s=simulate(topology, workload, plan).makespan_s,
    )


def drawn_world(rng: random.Random, num_sites: int) -> Topology:
    """Equal sites of servers of 8 GPUs of 192 GB, every two joined by links of drawn figures."""
    num_gpus = 8 * rng.randint(1, 3)
    domains = [
        replace(site(f"site{number}", num_gpus), gpu_memory_bytes=192e9)
        for number in range(num_sites)
    ]
    return Topology.of(
        domains,
        [
            Link(
                source=one.name,
                target=other.name,
                bandwidth_bytes_per_s=10 ** rng.uniform(8, 10),
                latency_s=rng.uniform(0.0, 0.05),
            )
            for one, other in permutations(domains, 2)
        ],
    )


def drawn_placements(rng: random.Random, num_sites: int) -> list[Placement]:
    """A pipeline over all sites, a copy a site, or with four of them two pipelines of two."""
    order = rng.sample(range(num_sites), num_sites)
    kind = rng.choice(("pipeline", "copies", "pipelines" if num_sites == 4 else "copies"))
    if kind == "copies":
        return [Placement.parse(f"{one}*32") for one in order]
    if kind == "pipeline":
        return [
            Placement.of_stages(
                [(one, 32 // num_sites) for one in order[:-1]]
                + [(order[-1], 32 - 32 // num_sites * (num_sites - 1))]
            )
        ]
    return [
        Placement.parse(f"{one}*16,{other}*16")
        for one, other in zip(order[::2], order[1::2], strict=True)
    ]


def drawn_bound(trainer: str, seed: int) -> BoundPlan:
    """A plan that a trainer runs quickest of those with these layers in these domains."""
    rng = random.Random(seed)
    num_sites = rng.randint(2, 4)
    topology, placements = drawn_world(rng, num_sites), drawn_placements(rng, num_sites)
    workload = build_workload(
        rng.choice(MODELS[trainer]),
        num_microbatches=rng.choice((24, 48)),
        microbatch_size=rng.choice((1, 2, 4)),
        sequence_length=2048,
        gradient_precision="fp32",
        recomputation=rng.choice(("flash", "full")),
    )
    plan = Plan(
        placement=placements[0],
        replicas=tuple(placements[1:]),
        schedule=rng.choice(SCHEDULES[trainer]),
    )
    binder = PlanBinder(topology=topology, workload=workload, trainer=trainer_named(trainer))
    try:
        bound = binder.bind(plan)
    except ValueError:  # no degrees fill servers: another world
        return drawn_bound(trainer, seed + 1000)
    return _with_diloco(rng, bound) if trainer == "torchtitan" and len(placements) > 1 else bound


def _with_diloco(rng: random.Random, bound: BoundPlan) -> BoundPlan:
    """Half of the time the plan with an outer exchange of some kind that torchft allows."""
    bits = rng.choice((8.0, 16.0, 32.0))
    modes = [DiLoCo(steps_between=20, behind_backward=False, bits_per_value=bits)]
    if all(len(own) == 1 for own in bound.plan.stages_of_replicas):
        modes.append(StreamingDiLoCo(steps_between=88, bits_per_value=bits))
    chunks = max(own.chunks for own in bound.plan.parallelism)
    if chunks > 1 or rng.random() < 0.5:
        return bound
    plan = replace(bound.plan, synchronisation=rng.choice(modes), exchange=GradientExchange())
    return replace(
        bound,
        plan=plan,
        step_s=mean_step(bound.topology, bound.workload, plan, bound.corrections)[0],
    )
