"""The strongest planner of worlds that stand still: order, split and depth, searched together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.problem import PlanningProblem
from agents.decision.simulator import Simulator
from agents.judge.search_judge import Judge
from agents.judge.steady_judge import MISFIT
from agents.planners.search.search_exact import Enumeration
from agents.planners.search.search_orders import search_all_orders, search_some_orders
from des import (
    NO_CORRECTIONS,
    Corrections,
    InfeasiblePlacementError,
    Plan,
    Topology,
    Workload,
    domain_memory,
    simulate,
)
from des.base.checks import require_count, require_seed
from des.costs.feasibility import tightest_domain
from des.schedules import is_static

MOST_DOMAINS_FOR_ALL_ORDERS = 6
"""Most domains of which all orders are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Result of a search.

    Attributes
    ----------
    num_judged
        Number of plans judged on the way; those that do not fit are not judged.
    is_proven
        Whether no plan with one stage per domain that fits is quicker under any of the schedules.
        Without an exact search the plan may be as good, but that is not proven.
    """

    plan: Plan
    makespan_s: float
    num_judged: int
    is_proven: bool


def search(
    topology: Topology,
    workload: Workload,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    schedules: Sequence[str] = DEPTHS,
    simulator: Simulator = simulate,
    seed: int = 0,
    max_judged: int | None = None,
    is_exact: bool = False,
) -> Found:
    """Find the plan of least iteration time that has one stage per domain and fits into memory.

    Links are taken at the figures of the topology, also where they move within an iteration; who
    wants them as they are now gives ``topology.at_start()``. Equal arguments give equal results.

    Parameters
    ----------
    schedules
        Schedules to choose from, static ones (`des.schedules.is_static`). Of equal plans the one
        under the first is kept.
    simulator
        Judges plans. That of `des` (or its compiled twin) does so in compiled code, about a million
        plans a second, where `steady_judge.has_steady_plans` and `Judge.are_steady` say that it
        can; others are simulated one by one.
    seed
        For the orders from which a search of more than 6 domains starts; of fewer, all are judged.
    max_judged
        Most plans to judge before the best so far is returned. None: 20 million, or 5 thousand
        where they are simulated one by one.
    is_exact
        Go through all plans that a lower bound does not rule out, after the search; for up to 6
        domains.

    Raises
    ------
    ValueError
        If a schedule is not static or given twice, or an exact search has too many domains.
    InfeasiblePlacementError
        If no plan fits, naming what the one lacks that lacks least. Of up to 6 domains that is
        certain; of more it means that none was found.

    Notes
    -----
    Every order of the domains gets the split that is level (`des.compiled.many.steady.water_fill`)
    under every schedule. The best 192 orders are refined: layers move between any two stages, 1, 2,
    4 or 8 at a time, under all schedules at once, as long as that helps, and by two moves at once
    where one does not; then so are all neighbours of the best order. Over more than 6 domains,
    orders are found by descent over swaps, insertions, reversals, replacements, domains left out
    and added, from 8 starts; then again from changes of the best and from new starts, until 6
    rounds have not helped. The exact search walks through splits stage by stage, and leaves out
    what `agents.planners.exact.bounds` would and what no split of the layers that are left can save
    (`agents.judge.splits`).

    How good it is without ``is_exact`` was measured against the proven best on worlds of unequal
    domains, layers and links, ``search(*drawn_case(seed, 4, 8))`` against the same with
    ``is_exact=True`` (`tests.search_cases.drawn_case`), seeds from 0 on: 4 domains and 8
    layers, also enumerated in full, 300 of 300 worlds best; 4 and 40, 200 of 200; 5 and 24, 199 of
    200, worst 0.22 % slower; 6 and 30, 192 of 200, worst 1.20 %. Over 10 domains and 60 layers two
    seeds agree to the last bit in 25 of 30 worlds (seeds 0 to 29); the others differ by 0.02 to
    1.6 %, all by 0.09 % on average.

    Examples
    --------
    Two domains of 1 FLOP/s, and links so fast that both are of use:

    >>> from des import Domain, Layer, Link
    >>> domains = [
    ...     Domain(
    ...         name=name, num_gpus=1, gpu_peak_flops_per_s=1.0, gpu_memory_bytes=1e12,
    ...         gpu_memory_bandwidth_bytes_per_s=1.0, attainable_fraction=1.0,
    ...         intra_bandwidth_bytes_per_s=1.0, intra_latency_s=0.0,
    ...     )
    ...     for name in ("East", "West")
    ... ]
    >>> links = [
    ...     Link(source=one, target=other, bandwidth_bytes_per_s=1e9, latency_s=0.5)
    ...     for one, other in (("East", "West"), ("West", "East"))
    ... ]
    >>> layer = Layer(
    ...     forward_flops=1.0, input_gradient_flops=1.0, weight_gradient_flops=1.0,
    ...     num_parameters=1.0, activation_bytes=1.0, weight_input_bytes=1.0,
    ... )
    >>> job = Workload(
    ...     name="job", layers=(layer,) * 4, num_microbatches=8, tokens_per_microbatch=1,
    ...     message_bytes=0.0,
    ... )
    >>> found = search(Topology.of(domains, links), job, is_exact=True)
    >>> str(found.plan.placement), found.plan.schedule, found.makespan_s, found.is_proven
    ('0*2,1*2', '1f1b_2x', 55.0, True)
    """
    names = _check(topology, schedules, max_judged, is_exact)
    require_seed("search", "seed", seed)
    steady = replace(topology, movement=None)
    judge = Judge(
        steady, workload, corrections, schedules=names, simulator=simulator, max_judged=max_judged
    )
    if topology.num_domains <= MOST_DOMAINS_FOR_ALL_ORDERS:
        best, score = search_all_orders(judge)
    else:
        best, score = search_some_orders(judge, np.random.default_rng(seed))
    is_proven = False
    if is_exact:
        every = Enumeration(judge, best, score)
        is_proven = every.run()
        best, score = every.best, every.best_score
    plan = judge.plan(best, 0)
    if score >= MISFIT:
        nearest = tightest_domain(domain_memory(steady, workload, plan))
        raise InfeasiblePlacementError(f"search: no plan was found that fits; at best, {nearest}")
    return Found(plan=plan, makespan_s=score, num_judged=judge.num_judged, is_proven=is_proven)


def search_planner(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Choose the plan that `search` finds among the schedules of a problem; it draws nothing.

    Raises
    ------
    ValueError
        See `search`.
    """
    return search(
        problem.topology,
        problem.workload,
        problem.corrections,
        schedules=problem.choices,
        simulator=problem.simulator,
    ).plan


def _check(
    topology: Topology, schedules: Sequence[str], max_judged: int | None, is_exact: bool
) -> tuple[str, ...]:
    """Return the schedules; refuses arguments that are out of their range."""
    names = tuple(schedules)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"search: schedules must be one or more, each once, got {names!r}")
    for name in names:
        if not is_static(name):
            raise ValueError(
                f"search: schedules must be static, such as {', '.join(DEPTHS)}; got {name!r}, "
                "which looks at times"
            )
    if max_judged is not None:
        require_count("search", "max_judged", max_judged)
    if is_exact and topology.num_domains > MOST_DOMAINS_FOR_ALL_ORDERS:
        raise ValueError(
            f"search: is_exact must be False for more than {MOST_DOMAINS_FOR_ALL_ORDERS} domains, "
            f"got True for {topology.num_domains}"
        )
    return names
