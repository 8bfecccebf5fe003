"""Training time and utilisation against one domain, against equal GPUs, and against physics."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from agents.decision.depths import DEPTHS
from agents.decision.frozen_network import freeze_topologies
from agents.decision.problem import PlanningProblem
from des import NO_CORRECTIONS, Placement, Plan, Topology, Workload
from des.compiled.simulate import simulate_compiled
from scenarios.study.targets.measurement_size import SchedulerColumn, Scope, by_world, misfits_of
from scenarios.study.targets.references import (
    best_single_domain,
    chain_bound,
    has_shapes,
    held_work_s,
    in_one_domain,
    iteration_bound_s,
    iteration_times_s,
    physical_bound_s,
)
from scenarios.study.targets.target import Goal, Target, mean_fields
from scenarios.suites import SuiteWorld

SUITES = ("eval_calm", "eval_held", "hard")
"""Worlds where more than one domain can be of use; in `null` there is nothing to win."""

TIME_SAVED, UTILISATION_GAIN = 0.25, 0.35
SHARE_OF_BOUND = 0.95

_MOST_SHOWN = 8  # cases whose room for a chain the notes name


@dataclass(frozen=True, kw_only=True)
class ReferenceTimes:
    """Times of one draw of a world, whatever the scheduler. [s]

    Attributes
    ----------
    single_s
        The whole job in one domain at a time; NaN where the trainer can run it in none.
    uniform_s
        Even split over all domains in name order, held, with the depth that is best for it; NaN
        where the trainer cannot run it.
    physical_s
        All domains busy in every epoch, nothing ever sent.
    least_s
        The same, but activations have to cross the quickest link; where layers take times by their
        shapes, the proven bound over all families.
    """

    single_s: float
    uniform_s: float
    physical_s: float
    least_s: float
    single_fits: bool


@dataclass(frozen=True, kw_only=True)
class DrawTimes(ReferenceTimes):
    """Time of a scheduler in one draw of a world, with its references. [s]"""

    own_s: float

    @property
    def saving(self) -> float:
        """Time saved against one domain, as a share of its time."""
        return 1.0 - self.own_s / self.single_s

    @property
    def gain(self) -> float:
        """Utilisation of all GPUs over that of one domain, less 1.

        Both do the same FLOPs, and the peak counts the GPUs of all domains both times.
        """
        return self.single_s / self.own_s - 1.0


def times_of(column: SchedulerColumn, world: SuiteWorld, draw: int) -> DrawTimes:
    """Measure a draw of a world."""
    episode = column.episode(world, draw)
    num_epochs = len(episode.rows)
    reference = column.scope.once(
        ("times", world.name, draw, num_epochs),
        lambda: reference_times(column.scope, world, draw, num_epochs),
    )
    return DrawTimes(own_s=episode.total_s, **asdict(reference))


def reference_times(scope: Scope, world: SuiteWorld, draw: int, num_epochs: int) -> ReferenceTimes:
    """Work out the references of the first epochs of a draw, as the trainer runs them."""
    base = replace(world.topology, movement=None)
    networks = freeze_topologies(world, draw, num_epochs)
    alone = [in_one_domain(domain, world.workload) for domain in range(base.num_domains)]
    problem = PlanningProblem(topology=base, workload=world.workload)
    runs = [scope.plan_as_run(problem, plan) for plan in alone]
    plans = [plan for plan in runs if plan is not None]
    single = best_single_domain(world, networks, plans) if plans else None
    even = even_split_plan(world.topology, world.workload)
    uniform = scope.plan_as_run(problem, even)
    uniform_s = math.nan
    if uniform is not None:
        uniform_s = held_work_s(world, iteration_times_s(networks, world.workload, uniform))
    return ReferenceTimes(
        single_s=math.nan if single is None else single.total_s,
        uniform_s=uniform_s,
        physical_s=held_work_s(world, [physical_bound_s(one, world.workload) for one in networks]),
        least_s=held_work_s(world, [iteration_bound_s(one, world.workload) for one in networks]),
        single_fits=single is not None and single.fits_memory,
    )


def even_split_plan(topology: Topology, workload: Workload) -> Plan:
    """Even split over all domains with the warm-up depth that is quickest where it fits."""
    placement = Placement.even(topology.num_domains, workload.num_layers)
    plans = [Plan(placement=placement, schedule=name) for name in DEPTHS]
    results = [simulate_compiled(topology, workload, plan, NO_CORRECTIONS) for plan in plans]
    places = range(len(plans))
    best = min(places, key=lambda at: (not results[at].fits_memory, results[at].makespan_s))
    return plans[best]


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure training time and utilisation."""
    scope = column.scope
    worlds = [world for name in SUITES for world in scope.worlds(name)]
    times = {
        (world.name, draw): times_of(column, world, draw)
        for world in worlds
        for draw in scope.draws(world)
    }

    def mean_of(figure: str) -> list[float]:
        return by_world(
            scope, worlds, lambda world, draw: float(getattr(times[world.name, draw], figure))
        )

    savings, gains = known(mean_of("saving")), known(mean_of("gain"))
    limits = [one.least_s if scope.has_sites else one.physical_s for one in times.values()]
    singles = [one.single_s for one in times.values()]
    most_saved = _mean([1.0 - low / one for low, one in zip(limits, singles, strict=True)])
    most_gained = _mean([one / low - 1.0 for low, one in zip(limits, singles, strict=True)])
    cases = _cases(scope, worlds, list(times.values()))
    equal = _mean([1.0 - one.own_s / one.uniform_s for one in times.values()])
    misfits = misfits_of(column, worlds)
    saved = mean_fields(savings, misfits)
    return [
        Target(
            name="training time",
            definition="1 - time of equal work, moves included, over that of the reference",
            reference="the whole job in the best one domain at a time, which knows the draw",
            goal=_goal(TIME_SAVED, most_saved),
            **saved,
            has_fewer_gpus=True,
            notes=(
                *misfits,
                f"at equal GPUs: {-100 * equal:+.1f} % time against the even split over all "
                "domains with its best depth",
                _limits_shown(list(times.values()), saved["value"], has_sites=scope.has_sites),
                *cases,
            ),
        ),
        Target(
            name="utilisation",
            definition="U / U_ref - 1; useful FLOPs over time and peak of all domains' GPUs",
            reference="the whole job in the best one domain at a time",
            goal=_goal(UTILISATION_GAIN, most_gained),
            **mean_fields(gains, misfits),
            has_fewer_gpus=True,
            notes=(
                *misfits,
                f"{'the proven bound' if scope.has_sites else 'physics'} allows "
                f"{100 * most_gained:.0f} %",
                "at equal GPUs, U against that of the even split: "
                f"{100 * _mean([one.uniform_s / one.own_s - 1 for one in times.values()]):+.1f} %",
            ),
        ),
    ]


def _goal(target: float, bound: float) -> Goal:
    """Set the stretch target to 95 % of the physical bound, where that is above the target."""
    return Goal(sense="at least", target=target, stretch=max(target, SHARE_OF_BOUND * bound))


def _limits_shown(times: Sequence[DrawTimes], value: float, *, has_sites: bool) -> str:
    """Say what can be saved at most: of real sites by the proof, else by physics."""
    physical = _mean([1.0 - one.physical_s / one.single_s for one in times])
    least = _mean([1.0 - one.least_s / one.single_s for one in times])
    if has_sites:
        return (
            f"the proven bound allows {100 * least:.1f} %; {_share_shown(value, least)} of that is "
            f"achieved; all domains busy and nothing sent would be {100 * physical:.1f} %"
        )
    return (
        f"physics allows {100 * physical:.1f} % (all domains busy, nothing sent); "
        f"{_share_shown(value, physical)} of that is achieved; "
        f"with a border to cross it allows {100 * least:.1f} %"
    )


def _share_shown(value: float, bound: float) -> str:
    is_known = bound > 0.0 and math.isfinite(value)
    return f"{100 * value / bound:.1f} %" if is_known else "none"


def _misfits_shown(scope: Scope, times: Sequence[DrawTimes]) -> str:
    """Say in how many draws the job does not fit into one domain, and what becomes of them."""
    misfits = sum(not one.single_fits for one in times)
    what = "is judged as if it did, in the reference's favour"
    if not scope.trainer.is_ideal:
        what = "has no reference, so the draw is left out"
    return f"in {misfits} of {len(times)} draws the job does not fit into the one domain and {what}"


def known(values: Sequence[float]) -> list[float]:
    """Return the values but those that are NaN, for want of a reference."""
    return [value for value in values if not math.isnan(value)]


def _cases(scope: Scope, worlds: list[SuiteWorld], times: list[DrawTimes]) -> tuple[str, ...]:
    """Notes on single cases."""
    bounds = {
        world.name: chain_bound(world.topology, world.workload)
        for world in worlds
        if not has_shapes(world.topology)
    }
    too_slow = [bound for bound in bounds.values() if not bound.allows_a_quarter]
    closest = sorted(bounds, key=lambda name: bounds[name].room)[:_MOST_SHOWN]
    return (
        _misfits_shown(scope, times),
        *([f"in {len(too_slow)} of {len(bounds)} worlds no chain can save 25 %"] if bounds else []),
        *(
            {str(bound) for bound in bounds.values()}
            if len(set(bounds.values())) == 1  # one world that moves in several ways
            else [f"{name}: {bounds[name]}" for name in closest]
        ),
        *([f"others of the {len(bounds)} have more room"] if len(bounds) > len(closest) else []),
    )


def _mean(values: Sequence[float]) -> float:
    """Mean of the values that are known; 0 of none."""
    those = known(values)
    return sum(those) / len(those) if those else 0.0
