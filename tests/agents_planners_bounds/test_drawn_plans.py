"""Lower bound of a step: no drawn plan of several groups is below it, whatever the links."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharing import with_parameters
from strategies import unit_workload, world

from agents.decision.families import FAMILIES, Family, family_of
from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.judge.step_times import step_times_s
from agents.planners.bounds.domain_sets import DomainSets
from agents.planners.bounds.family_bounds import family_lower_bound_s
from agents.planners.bounds.job_figures import JobFigures
from des import (
    STEADY,
    GradientExchange,
    Placement,
    Plan,
    Topology,
    Workload,
    domain_memory,
)
from des.plan.synchronisation import agree_every_step

NUM_LAYERS, NUM_MICROBATCHES, NUM_PLANS = 6, 12, 100
SPACE = PlanSpace(families=FAMILIES, schedules=("1f1b", "zb_h2"), period_steps=4, bits=(8.0,))


def drawn_world(rng: np.random.Generator, num_domains: int, room_bytes: float) -> Topology:
    """Domains of drawn speeds and memory, and links of drawn rates, each way its own."""
    names, slowest = "ABCDE"[:num_domains], 10.0 ** rng.uniform(0.0, 3.0)
    links = {
        a + b: (float(slowest * 10.0 ** rng.uniform(0.0, 1.0)), float(rng.uniform(0.0, 0.5)))
        for a, b in permutations(names, 2)
    }
    drawn = world(names, links)
    domains = tuple(
        replace(
            domain,
            gpu_peak_flops_per_s=float(rng.uniform(0.3, 1.0)),
            gpu_memory_bytes=float(rng.uniform(0.3, 1.0) * room_bytes),
        )
        for domain in drawn.domains
    )
    return replace(drawn, domains=domains, dynamics=STEADY)


def parts_of(rng: np.random.Generator, total: int, num_parts: int) -> list[int]:
    """A count as a sum of parts of at least 1."""
    cuts = np.sort(rng.choice(total - 1, num_parts - 1, replace=False)) + 1
    return np.diff([0, *cuts, total]).tolist()


def drawn_plans(rng: np.random.Generator, num_domains: int) -> Iterator[Plan]:
    """Groups of drawn domains in drawn orders, with drawn layers, shares, modes and exchanges."""
    modes = [mode for family in SPACE.families for mode in SPACE.modes(family)]
    for _ in range(NUM_PLANS):
        used = rng.permutation(num_domains)[: rng.integers(1, num_domains + 1)].tolist()
        sizes = parts_of(rng, len(used), int(rng.integers(1, len(used) + 1)))
        ends = np.cumsum(sizes)
        groups = [used[end - size : end] for size, end in zip(sizes, ends, strict=True)]
        first, *others = (
            Placement.contiguous(group, parts_of(rng, NUM_LAYERS, len(group))) for group in groups
        )
        mode = modes[rng.integers(len(modes))]
        tree = tuple(int(rng.integers(place + 1)) for place in range(len(others)))
        exchange = GradientExchange(bucket_bytes=1.0, tree=tree if rng.random() < 0.5 else ())
        if agree_every_step(mode) and others and rng.random() < 0.3:
            exchange = GradientExchange(bucket_bytes=1.0, sharded=True)
        yield Plan(
            placement=first,
            replicas=tuple(others),
            shares=tuple(parts_of(rng, NUM_MICROBATCHES, len(groups))) if others else (),
            schedule=SPACE.schedules[rng.integers(len(SPACE.schedules))],
            synchronisation=mode if others else SPACE.modes("single")[0],
            exchange=exchange,
        )


def shortest_s(topology: Topology, workload: Workload, plans: list[Plan]) -> dict[Family, float]:
    """Shortest mean step of each family among the plans that fit. [s]"""
    fitting = [
        plan
        for plan in plans
        if all(domain.fits for domain in domain_memory(topology, workload, plan))
    ]
    found: dict[Family, float] = {}
    times_s = step_times_s(topology, workload, fitting) if fitting else ()
    for plan, step_s in zip(fitting, times_s, strict=True):
        family = family_of(plan)
        found[family] = min(found.get(family, np.inf), float(step_s))
    return found


@pytest.mark.parametrize("num_domains", [3, 5])
@given(seed=st.integers(0, 2**32 - 1), room=st.sampled_from([3e3, 2e4]))
def test_no_drawn_plan_is_below_the_bound(num_domains, seed, room):
    rng = np.random.default_rng(seed)
    topology = drawn_world(rng, num_domains, room)
    passes = [(1.0, 2.0)] * NUM_LAYERS
    workload = unit_workload(passes, num_microbatches=NUM_MICROBATCHES, message_bytes=100.0)
    workload = with_parameters(workload, 50.0)
    job = TrainingJob(model="llama2_7b", num_sequences=16)
    problem = WholeProblem(topology=topology, job=job, space=SPACE)
    sets = DomainSets(figures=JobFigures.of(problem, workload))

    plans = list(drawn_plans(rng, num_domains))
    for family, step_s in shortest_s(topology, workload, plans).items():
        for is_checked in (False, True):
            bound_s = family_lower_bound_s(sets, SPACE, family, is_checked=is_checked)
            assert bound_s <= step_s * (1.0 + 1e-12), family
