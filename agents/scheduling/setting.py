"""World, plans allowed and figures of the job that all episodes of a scheduling task share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agents.decision.families import Family
from agents.decision.plan_space import PlanSpace
from agents.decision.trained_workload import trained_workload
from agents.decision.world import DecisionWorld
from agents.scheduling.known_plan import PlanBook
from agents.search.bind import PlanBinder
from agents.trainers.ideal import IDEAL
from agents.trainers.trainer import Trainer
from des import EVERY_STEP, NO_CORRECTIONS, Corrections, Plan, Topology, Workload
from des.compiled.many.each import NetworkFigures, is_plain, network_figures
from des.compiled.many.job import DomainFigures, domain_figures
from des.plan.synchronisation import Synchronisation
from des.schedules import has_pace


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
