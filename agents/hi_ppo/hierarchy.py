"""Both levels together: where layers go across domains, and how GPUs share them inside."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agents.decision.levels import level_of
from agents.decision.situation import Decision, Scheduler, Situation
from agents.decision.training_job import TrainingJob
from agents.hi_ppo.coordinator import NoValidPlanError
from agents.hi_ppo.local.agreement import bound_topology, cases_of, settle, with_local, workload_of
from agents.hi_ppo.local.case import DomainCase
from agents.hi_ppo.local.decide import LocalAgent, LocalDecision
from agents.hi_ppo.validation import plan_of_other_domains, require_free, require_valid
from des import InfeasiblePlacementError, Plan, Topology, UnreachableError, Workload
from des.devices.gpus import GpuTopology


@dataclass(frozen=True, kw_only=True)
class CompleteDecision:
    """A plan for both levels, which was validated as a whole.

    Attributes
    ----------
    decision
        Decision across domains. Its ``response_s`` has the parts of that level.
    plan
        The same plan with the parallelism of its domains.
    workload
        The job in the microbatches, and with the recomputation, that domains agreed on.
    topology
        The network with the inner networks that the bindings have.
    local
        Decisions inside domains, by the name of the domain, from the input on.
    response_s
        Wall time from the event to the validated plan, ``total``, with its parts
        ``inter_domain``, ``intra_domain`` and ``validation``. [s]
    is_fallback
        Whether a level had no valid plan of its own, so that an earlier one stays.
    """

    decision: Decision
    plan: Plan
    workload: Workload
    topology: Topology
    local: Mapping[str, LocalDecision]
    response_s: Mapping[str, float]
    is_fallback: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyCounts:
    """Counts of a hierarchy's decisions since it was made; fallbacks of both levels together."""

    decisions: int = 0
    rebindings: int = 0
    fallbacks: int = 0


@dataclass(frozen=True, kw_only=True)
class _Complete:
    """A plan of both levels before it is put together, by the names of its domains."""

    plan: Plan
    names: tuple[str, ...]
    decisions: tuple[LocalDecision, ...]


class Hierarchy:
    """Decides at both levels, on two time scales.

    `decide` places layers across domains, epoch by epoch, and shares them inside; `rebind` asks the
    local level alone, as often as loads or GPUs change. Either way the complete plan is validated
    as a whole. If it cannot be used the last one stays that could, if it still can, which the
    decision and ``counts`` tell.

    Parameters
    ----------
    across
        Places layers across domains, such as `agents.hi_ppo.coordinator.Coordinator`.
    gpus
        One for each domain of the first situation; domains are known by name from then on. None
        where GPUs are not known one by one: such a domain is decided by rule.
    validate
        Raises where a complete plan cannot be used, as `agents.hi_ppo.validation.require_valid`,
        given the situation with the inner networks and the workload agreed on.
    clock
        For response times.
    """

    def __init__(
        self,
        across: Scheduler,
        local_agent: LocalAgent,
        gpus: Sequence[GpuTopology | None],
        *,
        validate: Callable[[Situation, Plan], None] = require_valid,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.across, self.local_agent = across, local_agent
        self._first_gpus, self._validate, self._clock = tuple(gpus), validate, clock
        self._gpus: dict[str, GpuTopology | None] = {}
        self.counts = HierarchyCounts()
        self.begin()

    def begin(self) -> None:
        """Forget what was decided and seen; GPUs stay."""
        self.across.begin()
        self._last: _Complete | None = None

    def decide(self, situation: Situation, job: TrainingJob) -> CompleteDecision:
        """Return a complete plan for the epoch.

        The situation's workload is the job as the level across domains sees it: each domain works
        as one device. Local parts of its last plan are left aside; those that were decided last
        are known.

        Raises
        ------
        InfeasiblePlacementError
            If no plan fits and there was none before, naming domain, needs and what it has.
        NoValidPlanError
            If neither the new plan nor the last complete one can be used.
        ValueError
            If the situation does not match the job or the GPUs.
        """
        began_s = self._clock()
        last = situation.last_plan
        if last is not None and last.parallelism:
            situation = replace(situation, last_plan=replace(last, parallelism=()))
        decided: Decision | None = None
        failure: ValueError | None = None
        try:
            decided = self.across.decide(situation)
        except (InfeasiblePlacementError, UnreachableError, NoValidPlanError) as error:
            failure = error
        placed_s = self._clock()
        found = self._complete(situation, job, decided, failure, (began_s, placed_s))
        self.counts = replace(
            self.counts,
            decisions=self.counts.decisions + 1,
            fallbacks=self.counts.fallbacks + found.is_fallback,
        )
        return found

    def rebind(
        self,
        situation: Situation,
        job: TrainingJob,
        *,
        gpus: Mapping[str, GpuTopology | None] | None = None,
    ) -> CompleteDecision:
        """Decide inside the domains alone: the layers stay where the last complete plan has them.

        Parameters
        ----------
        gpus
            Those that have changed, by the name of their domain; kept from now on.

        Raises
        ------
        InfeasiblePlacementError, NoValidPlanError, ValueError
            As `decide`; the former also if there is no plan to keep.
        """
        began_s = self._clock()
        self._gpus_of(situation)
        self._gpus |= gpus or {}
        kept = None if self._last is None else self._here(self._last, situation)
        if kept is None:
            raise ValueError("hierarchy: decide must have placed layers on these domains first")
        decided = Decision(plan=kept.plan, level="nothing")
        found = self._complete(situation, job, decided, None, (began_s, began_s))
        self.counts = replace(
            self.counts,
            rebindings=self.counts.rebindings + 1,
            fallbacks=self.counts.fallbacks + found.is_fallback,
        )
        return found

    def _complete(
        self,
        situation: Situation,
        job: TrainingJob,
        decided: Decision | None,
        failure: ValueError | None,
        since_s: tuple[float, float],
    ) -> CompleteDecision:
        """Decide inside, put the plan together and validate it; else fall back on the last one."""
        kept: _Complete | None = None
        cases: tuple[DomainCase, ...] = ()
        if decided is not None:
            cases = self._cases(situation, job, decided.plan)
            try:
                own = settle(self.local_agent, situation.topology, decided.plan, cases)
                kept = _Complete(plan=decided.plan, names=_names_of(situation), decisions=own)
            except (InfeasiblePlacementError, UnreachableError) as error:
                failure = error
        bound_s = self._clock()
        found: CompleteDecision | None = None
        if decided is not None and kept is not None:
            try:
                found = self._validated(situation, job, decided, kept, cases)
            except (InfeasiblePlacementError, UnreachableError) as error:
                failure = error
        if found is None or kept is None:
            assert failure is not None
            found, kept = self._fallen_back(situation, job, failure)
        self._last = kept
        ended_s = self._clock()
        timings = {
            "inter_domain": since_s[1] - since_s[0],
            "intra_domain": bound_s - since_s[1],
            "validation": ended_s - bound_s,
            "total": ended_s - since_s[0],
        }
        return replace(found, response_s=timings)

    def _fallen_back(
        self, situation: Situation, job: TrainingJob, failure: ValueError
    ) -> tuple[CompleteDecision, _Complete]:
        """Return the last complete plan, if it can still be used."""
        last = None if self._last is None else self._here(self._last, situation)
        if last is None:
            raise failure
        level = level_of(situation.last_plan, last.plan)
        decided = Decision(plan=last.plan, level=level, is_fallback=True)
        try:
            cases = self._cases(situation, job, last.plan)
            return self._validated(situation, job, decided, last, cases), last
        except (InfeasiblePlacementError, UnreachableError) as second:
            raise NoValidPlanError(
                f"hierarchy: epoch {situation.epoch}: neither the new plan ({failure}) nor the "
                f"last complete one can be used ({second})"
            ) from second

    def _validated(
        self,
        situation: Situation,
        job: TrainingJob,
        decided: Decision,
        complete: _Complete,
        cases: Sequence[DomainCase],
    ) -> CompleteDecision:
        """Put a plan together and validate it as a whole."""
        own = complete.decisions
        for case, decision in zip(cases, own, strict=True):
            require_free(case, decision)
        topology = bound_topology(situation.topology, complete.plan, cases, own)
        plan = with_local(complete.plan, own, topology.num_domains)
        workload = workload_of(job, own)
        self._validate(replace(situation, topology=topology, workload=workload), plan)
        return CompleteDecision(
            decision=decided,
            plan=plan,
            workload=workload,
            topology=topology,
            local={case.domain.name: decision for case, decision in zip(cases, own, strict=True)},
            response_s={},
            is_fallback=decided.is_fallback,
        )

    def _cases(self, situation: Situation, job: TrainingJob, plan: Plan) -> tuple[DomainCase, ...]:
        return cases_of(
            situation.topology,
            plan,
            job,
            self._gpus_of(situation),
            loads=situation.loads,
            corrections=situation.corrections,
        )

    def _gpus_of(self, situation: Situation) -> tuple[GpuTopology | None, ...]:
        names = _names_of(situation)
        if not self._gpus:
            if len(self._first_gpus) != len(names):
                raise ValueError(
                    f"hierarchy: gpus must hold one for each of the domains {', '.join(names)}, "
                    f"got {len(self._first_gpus)}"
                )
            self._gpus = dict(zip(names, self._first_gpus, strict=True))
        missing = [name for name in names if name not in self._gpus]
        if missing:
            raise ValueError(
                f"hierarchy: gpus must be known for every domain, got none for {missing[0]}"
            )
        return tuple(self._gpus[name] for name in names)

    def _here(self, complete: _Complete, situation: Situation) -> _Complete | None:
        """Return a plan by the numbers that its domains have now; None if one of them is gone."""
        names = _names_of(situation)
        plan = plan_of_other_domains(complete.plan, complete.names, names)
        return None if plan is None else replace(complete, plan=plan, names=names)


def _names_of(situation: Situation) -> tuple[str, ...]:
    return tuple(domain.name for domain in situation.topology.domains)
