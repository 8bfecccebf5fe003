"""The search over families on one network, for a job in microbatches of several sizes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product

import numpy as np

from agents.decision.families import Family, family_of
from agents.decision.plan_space import PlanSpace
from agents.decision.whole_plan import ProposeGroups, WholeFound
from agents.judge.paced_judge import Scored
from agents.judge.step_times import step_times_s
from agents.planners.choice.chains import mutual_links
from agents.planners.whole.best_pipelines import FoundPipeline, pipeline_rows, quickest_pipelines
from agents.planners.whole.copies import CopySearch, Mode
from agents.planners.whole.kept_plans import KeptPlans
from agents.planners.whole.misfits import shortfall
from agents.planners.whole.pipelines import OrderSearch
from agents.planners.whole.search_parts import (
    KeptState,
    PartMaker,
    SearchPart,
    worth_working_out,
)
from agents.planners.whole.sketches import Sketch, worth_sharding
from des import (
    Corrections,
    InfeasiblePlacementError,
    Plan,
    Topology,
    Workload,
    domain_memory,
)
from des.compiled.eligibility import has_plain_transport
from des.compiled.many.job import has_every_link
from des.compiled.simulate import simulate_compiled
from des.costs.feasibility import tightest_domain
from des.schedules import has_pace

_LEAST_BUDGET, _BUDGET_STAGES = 1_000, 40_000
"""Default budget of plans of a search: as many stages in all, but no fewer plans than this."""

_NUM_SIZES = 2
"""Microbatch sizes with a pipeline search: the best one for simple pipelines, and the best of
the rest on the orders found, if it is close."""

_CLOSE = 1.15
"""A size of microbatches is close if its best pipeline takes no more than this many times as long,
before layers are refined."""

_KINDS: tuple[Family, ...] = ("pipeline", "single")
"""Families of one copy of the model."""

_NUM_SKETCHES = 8
"""Sketches of each family that are worked out, of the best over all sizes of microbatches."""

_NUM_BETWEEN, _PART_BETWEEN = 4, 8
"""Further sketches of each family, of sizes between the least and the largest; and the part of the
plans that are judged for these."""

_MOST_PASSES_MADE = 1024
"""Most stages times microbatches for which schedules that look at times are made: that takes about
a hundredth of a second for every 256."""


_ROUNDING = 1.0 + 1e-8
"""A time is the least there can be if it is no more than this many times a bound."""


def default_budget(num_domains: int) -> int:
    """Return how many plans a search judges for each size of microbatches and compression."""
    return max(_LEAST_BUDGET, _BUDGET_STAGES // num_domains)


class FamilySearch:
    """A search for the best plan of each family that a space allows.

    Pipelines come first, copies of the model in groups of domains after them, each for all sizes of
    microbatches together.
    """

    def __init__(
        self,
        topology: Topology,
        workloads: Sequence[Workload],
        space: PlanSpace,
        corrections: Corrections,
        *,
        max_judged: int | None = None,
        propose: ProposeGroups | None = None,
    ) -> None:
        self._topology, self._workloads, self._propose = topology, workloads, propose
        self._space, self._corrections = space, corrections
        budget = default_budget(topology.num_domains)
        self._max_judged = budget if max_judged is None else max_judged
        self._is_plain = has_plain_transport(topology) and has_every_link(topology)
        self._bandwidth, _ = mutual_links(topology)
        self._paced = tuple(name for name in space.schedules if has_pace(name))
        self._kept = KeptPlans()
        self._nearest: dict[Family, tuple[float, InfeasiblePlacementError]] = {}
        self._num_judged = 0

    def run(self) -> WholeFound:
        """Look at pipelines, then at copies, each for all sizes of microbatches together."""
        space = self._space
        maker = PartMaker(
            self._topology,
            self._corrections,
            schedules=self._paced,
            bandwidth=self._bandwidth,
            modes=self._modes,
            propose=self._propose,
        )
        parts = [
            maker.part(workload, compression)
            for workload, compression in product(self._workloads, space.compressions)
        ]
        self._look_at_pipelines(parts)
        self._look_at_copies(parts)
        self._note_missing()
        by_family = self._kept.by_family(space.families)
        if not by_family:
            raise min(self._nearest.values(), key=lambda each: each[0])[1]
        return WholeFound(
            best=min(by_family.values(), key=lambda each: each.step_s),
            by_family=by_family,
            by_copies=self._kept.by_copies(space.families),
            misfits={
                family: nearest[1]
                for family, nearest in self._nearest.items()
                if family not in by_family
            },
            num_judged=self._num_judged + sum(part.num_judged for part in parts),
        )

    @cached_property
    def _modes(self) -> list[Mode]:
        """Families of several copies, with their ways to keep in step."""
        space = self._space
        several: tuple[Family, ...] = ("replicas", "hybrid", "diloco", "streaming_diloco")
        return [
            (family, mode)
            for family in several
            if family in space.families
            for mode in space.modes(family)
        ]

    def _look_at_pipelines(self, parts: Sequence[SearchPart]) -> None:
        """Search pipelines; then make schedules that look at times for the best of them."""
        wanted = [kind for kind in _KINDS if kind in self._space.families]
        if not wanted:
            return
        begun = [
            (search.begin(), search, part)
            for part in parts
            for search in [OrderSearch(part.judge, self._topology, self._bandwidth, part.proposed)]
        ]
        looked_at = self._by_size(begun)
        for kind in wanted:
            best = quickest_pipelines(looked_at[:_NUM_SIZES], kind) or quickest_pipelines(
                looked_at, kind
            )
            self._judge_pipelines(best)
            if not best:
                self._note_misfits(looked_at, kind)

    def _by_size(
        self, begun: Sequence[tuple[float, OrderSearch, SearchPart]]
    ) -> list[tuple[SearchPart, Scored]]:
        """Pipelines of every size of microbatches, of the best sizes first."""
        (_, best, part), *others = sorted(begun, key=lambda each: each[0])
        found = best.run(self._max_judged)
        known, most_s = best.best_orders(), _CLOSE * best.unrefined_s
        adopted = [(search.adopt(known), search, part) for _, search, part in others]
        adopted.sort(key=lambda each: each[0])
        looked_at = [(part, found)]
        for place, (time_s, search, own) in enumerate(adopted, start=1):
            is_close = place < _NUM_SIZES and time_s <= most_s
            looked_at.append((own, search.run(self._max_judged) if is_close else search.seeds()))
        return looked_at

    def _note_misfits(self, looked_at: Sequence[tuple[SearchPart, Scored]], kind: Family) -> None:
        """Remember what the pipelines of one domain, or of several, lack that lack least."""
        for part, scored in looked_at:
            rows = pipeline_rows(scored, kind)
            lacking = rows[scored.overflow[rows] > 0.0]
            if len(lacking):
                row = int(lacking[scored.overflow[lacking].argmin()])
                self._fits(part.workload, part.judge.plan(scored.plans, row))

    def _judge_pipelines(self, own: Sequence[FoundPipeline]) -> None:
        """Keep the best; paces are judged already where every border has a link of its own.

        Schedules that look at times are made where one might be quicker.
        """
        made = [name for name in self._space.schedules if not has_pace(name)]
        for each in own:
            workload, plan = each.part.workload, each.plan
            if self._is_plain:
                self._kept.keep(workload, plan, each.time_s)
            else:
                self._judge(workload, [plan])
            num_passes = len(plan.stages) * workload.num_microbatches
            is_least = self._is_plain and each.time_s <= each.least_s * _ROUNDING
            if is_least or plan.placement.num_borders == 0 or num_passes > _MOST_PASSES_MADE:
                continue
            others = [replace(plan, schedule=name) for name in made]
            self._judge(workload, [one for one in others if self._fits(workload, one)])

    def _look_at_copies(self, parts: Sequence[SearchPart]) -> None:
        """Search partitions into groups; the best sketches of each family are worked out."""
        sketched: dict[tuple[Mode, bool], list[tuple[Sketch, SearchPart]]] = {}
        ends = [parts[0], parts[-1]] if len(parts) > 1 else parts
        for part in [*ends, *parts[1:-1]]:
            for state, copies in part.copies.items():
                modes = [each for each in self._modes if state.is_of(each[1])]
                if part in ends:
                    found = copies.sketches(modes, _NUM_SKETCHES, self._max_judged)
                else:  # between the least and the largest size a search from what they found
                    known = [sketched.get((kind, state.sharded), ()) for kind in modes]
                    begun = (one.partition for own in known for one, _ in own)
                    most = self._max_judged // _PART_BETWEEN
                    found = copies.sketches_near(begun, modes, _NUM_SKETCHES, most)
                for kind, sketches in found.items():
                    into = sketched.setdefault((kind, state.sharded), [])
                    into.extend((one, part) for one in sketches)
        chosen: list[tuple[Sketch, Workload, CopySearch]] = []
        for (kind, sharded), found_of in sketched.items():
            state = KeptState(0.0, True) if sharded else KeptState.of(kind[1])
            own = worth_sharding(found_of, sketched.get((kind, False), ())) if sharded else found_of
            for sketch, part in worth_working_out(own, ends, _NUM_SKETCHES, _NUM_BETWEEN):
                chosen.append((sketch, part.workload, part.copies[state]))
        self._work_out(chosen)

    def _work_out(self, chosen: Sequence[tuple[Sketch, Workload, CopySearch]]) -> None:
        """Make plans of sketches, those of one search together, and judge them."""
        by_search: dict[CopySearch, list[Sketch]] = {}
        for sketch, _, copies in chosen:
            by_search.setdefault(copies, []).append(sketch)
        made = {copies: iter(copies.plans(own)) for copies, own in by_search.items()}
        plans: dict[int, tuple[Workload, list[Plan]]] = {}
        for _, workload, copies in chosen:
            plans.setdefault(id(workload), (workload, []))[1].extend(next(made[copies]))
        for workload, of_size in plans.values():
            self._judge(workload, of_size)

    def _note_missing(self) -> None:
        """Say what the roomiest plans lack of families of which the search saw none."""
        for family in self._space.families:
            if family in self._kept.families or family in self._nearest:
                continue
            mode = self._space.modes(family)[0]
            what = shortfall(self._topology, self._workloads[0], family, mode)
            said = f"at best, {what}" if what else "the search found none"
            error = InfeasiblePlacementError(f"{family}: no plan fits; {said}")
            self._nearest[family] = (np.inf, error)

    def _judge(self, workload: Workload, plans: Sequence[Plan]) -> None:
        """Simulate plans that fit, and keep the best of each family."""
        self._num_judged += len(plans)
        times_s = step_times_s(
            self._topology, workload, plans, self._corrections, simulator=simulate_compiled
        )
        for plan, time_s in zip(plans, times_s.tolist(), strict=True):
            self._kept.keep(workload, plan, time_s)

    def _fits(self, workload: Workload, plan: Plan) -> bool:
        """Whether a plan fits into memory; what it lacks is remembered."""
        tightest = tightest_domain(domain_memory(self._topology, workload, plan))
        if not tightest.fits:
            self._note_misfit(family_of(plan), tightest.overflow_fraction, str(tightest))
        return tightest.fits

    def _note_misfit(self, family: Family, lack: float, what: str) -> None:
        nearest = self._nearest.get(family)
        if nearest is None or lack < nearest[0]:
            self._nearest[family] = (
                lack,
                InfeasiblePlacementError(f"{family}: no plan fits; at best, {what}"),
            )
