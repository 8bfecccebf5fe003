"""Communication cost against data parallelism across domains."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from agents.decision.frozen_network import freeze_topology
from agents.decision.problem import PlanningProblem
from des import Plan, Topology, Workload
from scenarios.study.compare.summary import EDGES
from scenarios.study.targets import preferred_bytes
from scenarios.study.targets.measurement_size import SchedulerColumn, Scope, by_world, misfits_of
from scenarios.study.targets.preferred_bytes import SAVED
from scenarios.study.targets.references import Communication, communication_of, data_parallel_plan
from scenarios.study.targets.target import Goal, Target, mean_fields
from scenarios.study.targets.time_and_utilisation import SHARE_OF_BOUND, SUITES, even_split_plan
from scenarios.suites import SuiteWorld


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure bytes over links between domains for each trained token."""
    scope = column.scope
    worlds = [world for name in SUITES for world in scope.worlds(name)]
    references = {world.name: _data_parallel_bytes_per_token(world) for world in worlds}
    savings = by_world(
        scope,
        worlds,
        lambda world, draw: (
            1.0 - column.episode(world, draw).bytes_per_token / references[world.name]
        ),
    )
    most = [] if scope.has_sites else [_most_saved(world, references) for world in worlds]
    bound = float(np.mean(most)) if most else 0.0
    limit = f"more than one domain needs one border at least: {100 * bound:.1f} % can be saved"
    misfits = misfits_of(column, worlds)
    return [
        Target(
            name="communication cost",
            definition="1 - C / C_ref; bytes over all links and hops for each token, moves too",
            reference="a replica in every domain, gradients summed over the WAN after every step",
            goal=Goal(sense="at least", target=SAVED, stretch=max(SAVED, SHARE_OF_BOUND * bound)),
            **mean_fields(savings, misfits),
            notes=(
                *misfits,
                "every byte has the price 1",
                *([limit] if most else []),
                *(_by_tokens(worlds, savings) if scope.has_sites else ()),
                *_beside(column, worlds),
            ),
        ),
        preferred_bytes.measure(
            column,
            [] if misfits else worlds,
            lambda world, topology: _reference(scope, world, topology, even_split_plan),
        ),
    ]


def _data_parallel_bytes_per_token(world: SuiteWorld) -> float:
    plan = data_parallel_plan(world.topology, world.workload)
    found = communication_of(world.topology, world.workload, plan)
    return found.cost_bytes / world.workload.tokens_per_iteration


def _most_saved(world: SuiteWorld, references: Mapping[str, float]) -> float:
    """Share saved by a pipeline of one border, whose activations cross it both ways."""
    one_border = 2.0 * world.workload.message_bytes / world.workload.tokens_per_microbatch
    return 1.0 - one_border / references[world.name]


def _by_tokens(worlds: Sequence[SuiteWorld], savings: Sequence[float]) -> tuple[str, ...]:
    """Savings by tokens a step: replicas send as much at any batch, pipelines do not."""
    groups = np.digitize([world.workload.tokens_per_iteration for world in worlds], EDGES) - 1
    return tuple(
        f"from {EDGES[group] / 1e6:g} M tokens a step: median "
        f"{100 * np.median(np.array(savings)[groups == group]):.1f} % saved "
        f"in {int((groups == group).sum())} worlds"
        for group in sorted(set(groups.tolist()))
    )


def _beside(column: SchedulerColumn, worlds: list[SuiteWorld]) -> tuple[str, ...]:
    """Bytes against the even split, and seconds in which communication is in the way."""
    own_bytes, even_bytes, own_s, even_s, replicas_s = [], [], [], [], []
    for world in worlds:
        draw = column.scope.draws(world)[0]
        topology = freeze_topology(world, draw, 0)
        plan = column.episode(world, draw).plans[0]
        own = communication_of(topology, world.workload, plan)
        own_s.append(own.exposed_s / own.iteration_s)
        even = _reference(column.scope, world, topology, even_split_plan)
        if even is not None:
            own_bytes.append(own.cost_bytes)
            even_bytes.append(even.cost_bytes)
            even_s.append(even.exposed_s / even.iteration_s)
        replicas = _reference(column.scope, world, topology, data_parallel_plan)
        if replicas is not None:
            replicas_s.append(replicas.exposed_s / replicas.iteration_s)
    if not even_bytes:
        return ()
    shares = [_percent_of(one) for one in (own_s, even_s, replicas_s)]
    against = 100 * (1.0 - sum(own_bytes) / sum(even_bytes))
    return (
        f"{against:.1f} % fewer bytes an iteration than the even split over all domains",
        "share of an iteration in which communication is exposed: "
        f"{shares[0]}, even split {shares[1]}, replicas {shares[2]}",
    )


def _percent_of(shares: Sequence[float]) -> str:
    return f"{100 * float(np.mean(shares)):.1f} %" if shares else "not one that the trainer runs"


def _reference(
    scope: Scope,
    world: SuiteWorld,
    topology: Topology,
    make: Callable[[Topology, Workload], Plan],
) -> Communication | None:
    """A step of a reference as the trainer runs it; None where it cannot."""
    problem = PlanningProblem(
        topology=replace(world.topology, movement=None), workload=world.workload
    )
    plan = scope.plan_as_run(problem, make(world.topology, world.workload))
    return None if plan is None else communication_of(topology, world.workload, plan)
