"""Plans of domains completed to what a trainer runs: degrees, stages, schedule, sends and GPUs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from agents.decision.bound_plan import BoundPlan
from agents.decision.trained_workload import whole_shape
from agents.decision.training_job import TrainingJob
from agents.search.candidates import Candidate
from agents.search.given_layers import (
    GivenChain,
    best_pipeline,
    equal_copies,
    join_copies,
    lack_bytes,
)
from agents.search.kernels.pipeline_times import MISFIT
from agents.search.schedule_choice import INTERLEAVED
from agents.search.search import PlanRequest, bound_settings
from agents.search.settings import BoundSetting, num_stages_of
from agents.search.shared_parts import SharedParts
from agents.search.workspace import Workspace
from agents.trainers.plan_checks import domains_in_use
from agents.trainers.trainer import Trainer, base_schedule
from des import NO_CORRECTIONS, Corrections, InfeasiblePlacementError, Plan, Topology, Workload
from des.compiled.simulate import makespan_compiled_s
from des.costs.feasibility import domain_memory
from des.plan.plan_texts import pipelines_text
from des.plan.synchronisation import agree_every_step
from des.program.lowering import lower
from des.schedules import has_pace

_MOST_EXACT = 3
"""Most layouts that are simulated as whole plans."""

_EQUAL = 1.01
"""Estimates up to this multiple of the best are simulated as whole plans."""

_NEAR = 1.3
"""Times up to this multiple of the best let other sizes of groups be tried."""


@dataclass(frozen=True, kw_only=True)
class PlanBinder:
    """Completes plans of domains on one network, each once.

    A plan keeps its domains in their order, the layers of each, its microbatches and what its
    replicas exchange; degrees, stages, the schedule, sends and GPUs are those of the quickest plan
    that the trainer runs so. Its own schedule stays if the trainer has it. A trainer whose stages
    must be equal, all or those of replicas, gets the layers next to those given, and one whose
    replicas do equally many microbatches has no other shares. A plan that says
    how GPUs are used only takes the habit of sends on.

    Attributes
    ----------
    topology
        Links standing still at their present figures.
    schedules
        Schedules to choose from, in place of the plan's own; empty: see above.
    model
        Name or file of the model; empty: the workload's name.
    shared
        Parts of figures that it has in common with other searches.
    """

    topology: Topology
    workload: Workload
    trainer: Trainer
    corrections: Corrections = NO_CORRECTIONS
    schedules: tuple[str, ...] = ()
    model: str = ""
    shared: SharedParts = field(default_factory=SharedParts, repr=False, compare=False)
    _known: dict[Plan, BoundPlan] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def bind(self, plan: Plan) -> BoundPlan:
        """Return the bound plan.

        Raises
        ------
        InfeasiblePlacementError
            If it does not fit, naming what a GPU lacks at least.
        ValueError
            If the trainer cannot run it, or the workload is none of a model.
        """
        known = self._known.get(plan)
        if known is None:
            known = self._known[plan] = self._bound(plan)
        return known

    def _bound(self, plan: Plan) -> BoundPlan:
        plan.check_against(self.topology, self.workload)
        if plan.parallelism:
            return self._exact(self._with_sends(plan))
        copies, microbatches = len(plan.placements), self.workload.num_microbatches
        if self.trainer.equal_shares and microbatches % copies:
            raise ValueError(
                f"trainer {self.trainer.name}: microbatches must be a multiple of the {copies} "
                f"replicas, which do equally many; got {microbatches}"
            )
        found = sorted(self._layouts(plan), key=lambda one: one.estimate_s)
        if not found:
            raise ValueError(
                f"trainer {self.trainer.name}: no degrees divide the servers, layers and "
                f"microbatches of {self._text(plan)}"
            )
        if found[0].estimate_s >= MISFIT:
            raise InfeasiblePlacementError(self._shortfall(plan, found[0]))
        return self._quickest(plan, [one for one in found if one.estimate_s < MISFIT])

    def _quickest(self, plan: Plan, candidates: Sequence[Candidate]) -> BoundPlan:
        """The quickest by its exact time; of equal ones that which needs least memory."""
        bound: list[BoundPlan] = []
        refusals: list[ValueError] = []
        for candidate in candidates:
            if bound and candidate.estimate_s > _EQUAL * candidates[0].estimate_s:
                break
            try:
                bound.append(self._exact(self._complete(plan, candidate)))
            except ValueError as error:
                refusals.append(error)
            if len(bound) == _MOST_EXACT:
                break
        if not bound:
            raise refusals[0]
        return min(bound, key=lambda one: (one.step_s, _memory_fraction(one)))

    def _layouts(self, plan: Plan) -> Iterator[Candidate]:
        """The best layout of each setting that may be the quickest, see `foreseen_s`."""
        given = [GivenChain.of(one) for one in plan.placements]
        if plan.replicas and any(any(one.by_stage) for one in given):
            raise ValueError(
                "plan: layers of stages must be left to the trainer where there are replicas; got "
                f"{self._text(plan)}"
            )
        best_s, of_family = np.inf, dict[tuple[object, ...], float]()
        for bound_s, setting in self._rank(plan, given):
            family = setting.degrees, setting.schedule, setting.num_chunks
            is_far = of_family.get(family, 0.0) > _NEAR * best_s
            if min(bound_s, MISFIT) >= best_s or (setting.group_factor > 1.0 and is_far):
                continue
            found = self._layout(setting, given)
            if found is not None:
                of_family.setdefault(family, found.estimate_s)
                best_s = min(best_s, found.estimate_s)
                yield found

    def _layout(self, setting: BoundSetting, given: list[GivenChain]) -> Candidate | None:
        if len(given) == 1:
            return best_pipeline(self._workspace, setting, given[0])
        if self.trainer.equal_degrees:
            return equal_copies(self._workspace, setting, given)
        setting = replace(setting, num_replicas=len(given))
        copies = [best_pipeline(self._workspace, setting, one) for one in given]
        return join_copies(self._workspace, setting, copies)

    def _rank(self, plan: Plan, given: list[GivenChain]) -> list[tuple[float, BoundSetting]]:
        """Settings that each domain in use has servers for, the quickest bound first."""
        found, known = [], dict[tuple[object, ...], float]()
        schedules = self.schedules or self._own_schedule(plan.schedule)
        for each in bound_settings(replace(self.request, schedules=schedules), fits=False):
            if not self._has_servers(plan, each):
                continue
            setting = replace(each, num_replicas=len(given))
            family = setting.degrees, setting.schedule, setting.num_chunks
            if family not in known:  # the size of groups is no part of it
                known[family] = max(self._workspace.foreseen_s(setting, one.sites) for one in given)
            found.append((known[family], setting))
        return sorted(found, key=lambda each: (each[0], each[1].group_factor))

    def _has_servers(self, plan: Plan, setting: BoundSetting) -> bool:
        """Whether each domain in use holds a stage."""
        domains = [self.topology.domains[domain] for domain in domains_in_use(plan)]
        return all(num_stages_of(domain, setting.degrees) for domain in domains)

    @property
    def request(self) -> PlanRequest:
        """Request of all plans of the workload, under any schedule of the trainer."""
        size = int(whole_shape(self.workload).batch_size)
        return PlanRequest(
            topology=self.topology,
            job=self.job,
            trainer=self.trainer,
            corrections=self.corrections,
            microbatch_sizes=tuple(one for one in range(1, size + 1) if size % one == 0),
            workload=self.workload,
        )

    def _own_schedule(self, name: str) -> tuple[str, ...]:
        """The plan's schedule if the trainer has it and its stages can be searched; else any."""
        if not self.trainer.runs_schedule(name):
            return ()
        if base_schedule(name) == INTERLEAVED:
            return (INTERLEAVED,)
        return (name,) if has_pace(name) else ()

    @cached_property
    def job(self) -> TrainingJob:
        """The job of the workload, however its sequences are grouped."""
        shape, workload = whole_shape(self.workload), self.workload
        size = int(shape.batch_size)
        job = TrainingJob(
            model=self.model or workload.name,
            num_sequences=workload.num_microbatches * size,
            sequence_length=shape.sequence,
            num_layers=workload.num_layers,
            attention=shape.attention,
            precision=workload.precision,
        )
        if job.workload(size, shape.recomputation, workload.gradient_precision) != workload:
            raise ValueError(
                f"bind: workload {workload.name} must be one of build_workload, got other layers, "
                "messages or gradients"
            )
        return job

    @cached_property
    def _workspace(self) -> Workspace:
        return Workspace(
            topology=self.topology,
            job=self.job,
            corrections=self.corrections,
            shared=self.shared,
        )

    def _complete(self, plan: Plan, candidate: Candidate) -> Plan:
        """The plan that simulates a layout, with what the given one says of its exchange."""
        own = candidate.plan(self.topology)
        ways = plan.exchange if self.trainer.chooses_ways else replace(plan.exchange, tree=())
        is_sharded = own.exchange.sharded or plan.exchange.sharded
        return replace(
            own,
            shares=() if self.trainer.equal_shares else plan.shares,
            shares_domains=plan.shares_domains,
            synchronisation=plan.synchronisation,
            activation_compression=plan.activation_compression,
            exchange=replace(ways, sharded=is_sharded),
        )

    def _with_sends(self, plan: Plan) -> Plan:
        if self.trainer.chooses_ways or not self.trainer.runs_schedule(plan.schedule):
            return plan
        return replace(plan, sends=self.trainer.sends_under(plan.schedule))

    def _exact(self, plan: Plan) -> BoundPlan:
        if plan.replicas and not agree_every_step(plan.synchronisation):
            raise ValueError(
                f"trainer {self.trainer.name}: replicas of a plan that is bound must exchange "
                f"after every step; got {plan.synchronisation}"
            )
        program = lower(self.topology, self.workload, plan, self.corrections)
        return BoundPlan(
            topology=self.topology,
            workload=self.workload,
            plan=plan,
            trainer=self.trainer.name,
            step_s=makespan_compiled_s(self.topology, program, self.corrections),
            corrections=self.corrections,
        )

    def _shortfall(self, plan: Plan, least: Candidate) -> str:
        setting = least.setting
        return (
            f"trainer {self.trainer.name}: {self._text(plan)} does not fit; at best a GPU lacks "
            f"{lack_bytes(self._workspace, least) / 1e9:.1f} GB, with tensor "
            f"{setting.degrees.tensor}, data {setting.degrees.data} and {setting.schedule} over "
            f"{least.num_workers} stages"
        )

    def _text(self, plan: Plan) -> str:
        return pipelines_text(plan, tuple(self.topology.index_of))


def _memory_fraction(bound: BoundPlan) -> float:
    """Share of its memory that the fullest site uses."""
    memory = domain_memory(bound.topology, bound.workload, bound.plan)
    return max(one.required_bytes / one.capacity_bytes for one in memory)
