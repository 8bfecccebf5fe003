"""The setting of the scheduling task: known plans, their step times and what changes cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakValueDictionary

import numpy as np

from agents.decision.families import Family, family_of
from agents.decision.plan_space import PlanSpace
from agents.decision.trained_workload import trained_workload
from agents.decision.world import DecisionWorld
from agents.judge.change_costs import MoveRates
from agents.judge.copy_moves import costs_of_changes, held_layers
from agents.judge.step_times import step_times_each, step_wan_bytes
from agents.search.bind import PlanBinder
from agents.search.sketches import sketch_of
from agents.trainers.ideal import IDEAL
from agents.trainers.trainer import Trainer
from des import EVERY_STEP, NO_CORRECTIONS, Corrections, Plan, Topology, Workload
from des.compiled.many.each import NetworkFigures, is_plain, network_figures
from des.compiled.many.job import DomainFigures, domain_figures
from des.compiled.many.layout import Real, Small, Whole
from des.compiled.simulate import makespan_compiled_s
from des.costs.outer_state import has_outer_state
from des.plan.synchronisation import Synchronisation
from des.program.lowering import lower
from des.schedules import has_pace


@dataclass(frozen=True, eq=False)
class KnownPlan:
    """A plan of a job, with figures that are worked out once."""

    plan: Plan
    workload: Workload
    num_domains: int

    @cached_property
    def family(self) -> Family:
        """Kind of the plan."""
        return family_of(self.plan)

    @cached_property
    def layers(self) -> Small:
        """Domains of the layers of each pipeline, (R, L)."""
        return np.array([one.domain_of_layer for one in self.plan.placements], dtype=np.int32)

    @cached_property
    def has_outer_state(self) -> bool:
        """Whether its replicas have an outer optimiser."""
        return has_outer_state(self.plan)

    @cached_property
    def wan_bytes(self) -> float:
        """Bytes that leave a domain in a step, mean over a period of the synchronisation."""
        return float(step_wan_bytes(self.workload, [self.plan])[0])

    @cached_property
    def by_domain(self) -> Real:
        """Figures of each domain in the plan, (4 K,), all from 0, unused, to 1.

        Number of its pipeline; its place within that, both from 1 on and over the number of
        domains; its share of the layers; and its pipeline's share of the microbatches.
        """
        size, workload = self.num_domains, self.workload
        found = np.zeros((4, size))
        shares = self.plan.microbatches_of_replicas(workload.num_microbatches)
        placements = sketch_of(self.plan).placements  # a domain that comes back counts once
        for number, (placement, share) in enumerate(zip(placements, shares, strict=True)):
            for stage in placement.stages:
                found[:, stage.domain] = (
                    (number + 1) / size,
                    (stage.index + 1) / size,
                    stage.num_layers / workload.num_layers,
                    share / workload.num_microbatches,
                )
        return found.ravel()


class PlanBook:
    """The plans of a job in use: equal plans are one object."""

    def __init__(self, workload: Workload, num_domains: int) -> None:
        self._workload, self._num_domains = workload, num_domains
        self._known: WeakValueDictionary[Plan, KnownPlan] = WeakValueDictionary()

    def of(self, plan: Plan) -> KnownPlan:
        """Return a plan with its figures."""
        known = self._known.get(plan)
        if known is None:
            known = self._known[plan] = KnownPlan(plan, self._workload, self._num_domains)
        return known


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The world of all episodes, and the plans that are allowed in it.

    Attributes
    ----------
    world
        Job, network and costs of moves; each episode is a draw of it.
    space
        Families, schedules and synchronisation of the plans.
    trainer
        Trainer that runs the plans; of perfect devices, plans are as they are described.
    """

    world: DecisionWorld
    space: PlanSpace
    corrections: Corrections = NO_CORRECTIONS
    trainer: Trainer = IDEAL
    book: PlanBook = field(init=False)

    def __post_init__(self) -> None:
        world, space, owner = self.world, self.space, f"scheduling task of world {self.world.name}"
        if not is_plain(world.topology.at_start()):
            raise ValueError(
                f"{owner}: topology must have a link between every two domains, which serves in "
                f"turn and each way by itself; got {len(world.topology.links)} links of "
                f"{world.topology.num_domains} domains and {world.topology.transport!r}"
            )
        for name in space.schedules:
            if not has_pace(name):
                raise ValueError(f"{owner}: schedules must be ones with a pace, got {name!r}")
        if trained_workload(world.workload, self.trainer) != world.workload:
            raise ValueError(
                f"{owner}: workload must have gradients of {self.trainer.gradient_precision}, as "
                f"trainer {self.trainer.name} keeps them; got {world.workload.gradient_precision}"
            )
        object.__setattr__(self, "book", PlanBook(self.workload, self.num_domains))

    def bound(self, topology: Topology, plan: Plan) -> Plan:
        """Return a plan as the trainer runs it on a network; of perfect devices the one given.

        Raises
        ------
        ValueError
            If it cannot be bound, see `agents.search.bind.PlanBinder.bind`.
        """
        if self.trainer.is_ideal:
            return plan
        binder = PlanBinder(
            topology=topology,
            workload=self.workload,
            trainer=self.trainer,
            corrections=self.corrections,
        )
        return binder.bind(plan).plan

    @property
    def workload(self) -> Workload:
        """The job."""
        return self.world.workload

    @property
    def num_domains(self) -> int:
        """Number of domains, K."""
        return self.world.topology.num_domains

    @cached_property
    def modes(self) -> tuple[Synchronisation, ...]:
        """Ways to keep copies of the model in step: every step first."""
        rare: tuple[Family, ...] = ("diloco", "streaming_diloco")
        wanted = (family for family in rare if family in self.space.families)
        return (EVERY_STEP, *(mode for family in wanted for mode in self.space.modes(family)))

    @cached_property
    def common(self) -> DomainFigures:
        """Figures of the domains at base speeds."""
        return domain_figures(self.workload, self.world.topology.domains, self.corrections)

    def networks(self, topologies: Sequence[Topology]) -> NetworkFigures:
        """Work out the figures of networks of the world."""
        return network_figures(topologies, self.workload, self.common, self.corrections)


def steps_s(
    setting: Setting,
    networks: NetworkFigures,
    plans: Sequence[KnownPlan],
    topologies: Sequence[Topology] = (),
) -> Real:
    """Time of an iteration of plan ``n`` on network ``n``, (N,). [s]

    Of copies that seldom exchange it is the mean over a period of their synchronisation.

    Parameters
    ----------
    topologies
        The networks themselves, for plans that a trainer runs; of perfect devices unused.
    """
    if not setting.trainer.is_ideal:
        known = {
            key: makespan_compiled_s(
                key[0],
                lower(key[0], setting.workload, key[1].plan, setting.corrections),
                setting.corrections,
            )
            for key in dict.fromkeys(zip(topologies, plans, strict=True))
        }
        return np.array([known[key] for key in zip(topologies, plans, strict=True)])
    own = [one.plan for one in plans]
    return step_times_each(networks, setting.common, setting.workload, own, setting.corrections)


def change_figures(
    setting: Setting,
    networks: NetworkFigures,
    plans: Sequence[KnownPlan],
    old: Whole,
    new: Whole,
) -> Real:
    """Times [s] as `des.migration_s` has them, and bytes, of N changes, (2, N).

    Parameters
    ----------
    networks
        One for each change.
    plans
        Different plans.
    old, new
        Positions among them before and after each change, (N,).
    """
    costs = np.zeros((2, len(old)))
    rows = np.flatnonzero(old != new)
    if len(rows) == 0:
        return costs
    if setting.world.replacement.pays_bytes:
        held = held_layers([one.plan for one in plans], [one.layers for one in plans])
        rates = MoveRates(
            networks.goodput_bytes_per_s,
            networks.latency_s,
            float(setting.corrections.message_overhead_s),
        )
        changes = np.stack([old, new])[:, rows]
        costs[:, rows] = costs_of_changes(setting.workload, held, changes, rates, rows)
    costs[0, rows] += setting.world.replacement.restart_s
    return costs
