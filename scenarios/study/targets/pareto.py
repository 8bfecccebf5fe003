"""Pareto coverage: share of the reference fronts that one sweep of the preferences covers."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from agents.decision.situation import MakeScheduler, Preference
from agents.hi_ppo.proposing import first_situation
from agents.planners.pareto.proposals import Proposals, Propose
from des import Plan, Topology, Workload
from scenarios.study.pareto.fronts import (
    PricedWorld,
    Sweep,
    preference_grid,
    price_worlds,
    reference_front,
    swept,
)
from scenarios.study.pareto.methods import completed, methods_of
from scenarios.study.pareto.names import NUM_DOMAINS
from scenarios.study.pareto.study import TABLES, MethodFront, fronts_of_methods
from scenarios.study.targets.measurement_size import SchedulerColumn, Scope
from scenarios.study.targets.target import Goal, Target, mean_fields

FIRST_TABLE = "used_gpus"
"""Table of the coverage: time, cost, utilisation of the GPUs of domains in use."""

SECOND_TABLE = "activations"
"""Table with peak activation memory as a fourth objective; its figures are in the notes."""

LEAST_HYPERVOLUME = 0.99
"""Hypervolume relative to the reference that the stretch target needs, besides the coverage."""


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure the coverage of the reference fronts on priced worlds."""
    sizes = column.scope.sizes
    if column.only_world:
        return [_target(column, sizes.num_evaluations, (), notes=(column.only_world,))]
    domains = NUM_DOMAINS[:1] if column.scope.is_short else NUM_DOMAINS
    first = fronts_of(column, FIRST_TABLE, sizes.num_fronts, domains)
    num_second = sizes.num_fronts // 3  # none in a short run
    second = fronts_of(column, SECOND_TABLE, num_second, domains) if num_second else []
    coverages = [one.metrics.coverage for one in first]
    volume = float(np.mean([one.metrics.hypervolume_ratio for one in first]))
    distance = float(np.mean([one.metrics.igd_plus for one in first]))
    fourth = "not measured"
    if second:
        covered = float(np.mean([one.metrics.coverage for one in second]))
        filled = float(np.mean([one.metrics.hypervolume_ratio for one in second]))
        fourth = f"{100 * covered:.1f} %, hypervolume ratio {filled:.3f}"
    notes = (
        f"hypervolume ratio {volume:.3f}; the stretch target is 95 % coverage with "
        f"{LEAST_HYPERVOLUME} of it; IGD+ {distance:.4f}",
        f"with activation memory as a fourth objective: {fourth}",
        f"{len(first)} and {len(second)} worlds of {min(domains)} to {max(domains)} "
        "domains, priced links",
    )
    has_stretch = volume >= LEAST_HYPERVOLUME
    return [_target(column, sizes.num_evaluations, coverages, notes=notes, has_stretch=has_stretch)]


def _target(
    column: SchedulerColumn,
    num_evaluations: int,
    coverages: Sequence[float],
    *,
    notes: tuple[str, ...],
    has_stretch: bool = True,
) -> Target:
    others = "the method" if column.scope.is_short else "all methods"
    return Target(
        name="Pareto coverage",
        definition="share of the reference front that plans of one sweep of the weights cover "
        "up to 1 % of its range, completed by a search from them on; time, communication cost, "
        "utilisation of the GPUs in use",
        reference=f"enumeration (up to 6 domains), NSGA-II ({num_evaluations:,} evaluations) and "
        f"the plans of {others}",
        goal=Goal(sense="at least", target=0.85, stretch=0.95 if has_stretch else None),
        **mean_fields(coverages),
        notes=notes,
    )


def fronts_of(
    column: SchedulerColumn, table: str, num_worlds: int, domains: Sequence[int]
) -> list[MethodFront]:
    """Sweep the weights on priced worlds; returns the front of the column's method on each."""
    scope = column.scope
    propose = column.propose or decided(column.make)
    policies = {column.name: propose}
    methods = (
        {column.name: completed(swept(propose), TABLES[table])}
        if scope.is_short
        else methods_of(TABLES[table], seed=scope.seed, policies=policies)
    )
    methods = {
        name: sweep if name in policies else _once(scope, (table, name), sweep)
        for name, sweep in methods.items()
    }
    found = []
    for world in price_worlds(num_worlds, num_domains=domains, seed=scope.seed):
        made = scope.once(
            ("reference front", table, world.name, world.topology.num_domains),
            partial(
                reference_front,
                world.topology,
                world.workload,
                TABLES[table],
                num_evaluations=scope.sizes.num_evaluations,
                seed=scope.seed,
            ),
        )
        compared = fronts_of_methods(
            world,
            table,
            methods,
            preferences=preference_grid(),
            num_evaluations=scope.sizes.num_evaluations,
            seed=scope.seed,
            made=made,
        )
        found += [one for one in compared.methods if one.method == column.name]
    return found


def _once(scope: Scope, key: tuple[str, str], sweep: Sweep) -> Sweep:
    """Sweep a world once for all columns: the front of a method that is no column never differs."""

    def swept_once(world: PricedWorld, preferences: Sequence[Preference]) -> Proposals:
        whole_key = (*key, world.name, world.topology.num_domains)
        return scope.once(whole_key, partial(sweep, world, preferences))

    return swept_once


def decided(make: MakeScheduler) -> Propose:
    """Propose what a scheduler decides for a preference, before anything has run."""

    def propose(topology: Topology, workload: Workload, preference: Preference) -> Sequence[Plan]:
        scheduler = make()
        scheduler.begin()
        return (scheduler.decide(first_situation(topology, workload, preference)).plan,)

    return propose
