"""The local agent: binds what the policy and an estimate propose, and takes the quickest."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from agents.devices.binding_times import BindingWorks
from agents.hi_ppo.local.bound_plans import LocalPlan, each_quickly_bound, works_of
from agents.hi_ppo.local.case import LocalCase
from agents.hi_ppo.local.features import observe
from agents.hi_ppo.local.option_rows import LocalOption, Rows
from agents.hi_ppo.local.options import Options, options_of
from agents.hi_ppo.local.policy import LocalPolicy
from des import InfeasiblePlacementError, Parallelism
from des.base.checks import require_count

_MOST_KNOWN = 256
"""Most cases whose ranked options are cached: those of a few decisions over many domains."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SharedSetting:
    """Settings that all domains of a job share, as a microbatch passes through all of them."""

    microbatch_size: int
    recomputation: str

    def __str__(self) -> str:
        return f"{self.microbatch_size} sequences a microbatch, {self.recomputation} recomputation"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDecision:
    """Decision of the local agent for a domain.

    Attributes
    ----------
    binding
        A GPU for each place: devices in a row, their replicas, their tensor groups.
    seconds_per_sequence
        Estimate of the iteration's time over its sequences (`agents.devices.binding_times`). [s]
    response_s
        Wall time of the decision, a timing. [s]
    is_by_rule
        Whether `agents.hi_ppo.local.by_rule` decided, not the policy.
    """

    parallelism: Parallelism
    microbatch_size: int
    recomputation: str
    binding: tuple[int, ...]
    seconds_per_sequence: float
    response_s: float
    is_by_rule: bool = False

    @property
    def plan(self) -> LocalPlan:
        """The decision as a plan, to compare with others."""
        option = LocalOption(
            parallelism=self.parallelism,
            microbatch_size=self.microbatch_size,
            recomputation=self.recomputation,
        )
        return LocalPlan(
            option=option, binding=self.binding, seconds_per_sequence=self.seconds_per_sequence
        )

    def as_dict(self) -> dict[str, object]:
        """Plain content, for JSON."""
        shape = self.parallelism
        return {
            "parallelism": f"{shape.tensor}x{shape.data}x{shape.pipeline}",
            "shard_optimiser": shape.shards("optimiser"),
            "gpus": list(self.binding),
            "decided_by": "rule" if self.is_by_rule else "local agent",
        }

    @property
    def setting(self) -> SharedSetting:
        """Settings that the other domains must share."""
        return SharedSetting(microbatch_size=self.microbatch_size, recomputation=self.recomputation)


class Ranked(NamedTuple):
    """Options that fit, the same for the compiled code, and rows (N,) from the best one on."""

    options: Options
    works: BindingWorks
    by_policy: np.ndarray
    by_estimate: np.ndarray


@dataclass(frozen=True, kw_only=True)
class LocalAgent:
    """Decides for one domain at a time; one policy for all.

    Attributes
    ----------
    num_proposals
        Number of options that are bound and compared: alternately the policy's next best one and
        the next of least `Observation.estimate_s`, which is a formula; an option that both name
        counts once. A single proposal is the policy's.
    """

    policy: LocalPolicy
    num_proposals: int = 16

    def __post_init__(self) -> None:
        require_count("local agent", "num_proposals", self.num_proposals)

    def decide(self, case: LocalCase) -> LocalDecision:
        """Return the local plan of a domain, which fits into its memory.

        Raises
        ------
        InfeasiblePlacementError
            If no option fits, naming by how many GB.
        ValueError
            If what the policy sees is not finite.
        """
        start_s = time.perf_counter()
        ranked = self._ranked(case)
        is_allowed = np.ones(len(ranked.options), bool)
        (found,) = _bound(case, ranked, [proposed(ranked, is_allowed, self.num_proposals)])
        return _decision(found, time.perf_counter() - start_s)

    def menu(self, case: LocalCase, setting: SharedSetting) -> tuple[LocalDecision, ...]:
        """Return the quickest proposal of one setting for each number of devices in a row.

        Raises
        ------
        InfeasiblePlacementError
            If no option fits, naming by how many GB, or none of that setting does.
        ValueError
            If what the policy sees is not finite.
        """
        start_s = time.perf_counter()
        ranked = self._remembered(case)
        rows = ranked.options.rows
        own = np.array(proposed(ranked, _has(rows, setting), self.num_proposals), dtype=np.int64)
        if not own.size:
            raise InfeasiblePlacementError(
                f"domain {case.domain.name}: no local plan with {setting} fits for "
                f"{case.num_layers} layers"
            )
        counts = rows.pipeline[own]
        plans = _bound(case, ranked, [own[counts == count].tolist() for count in np.unique(counts)])
        response_s = time.perf_counter() - start_s
        return tuple(_decision(plan, response_s) for plan in plans)

    def alternatives(self, case: LocalCase) -> dict[SharedSetting, LocalDecision]:
        """Decide once for every setting of which an option fits, the smallest first.

        Raises
        ------
        InfeasiblePlacementError, ValueError
            As `decide`.
        """
        start_s = time.perf_counter()
        ranked = self._remembered(case)
        rows = ranked.options.rows
        kinds = set(zip(rows.microbatch_size.tolist(), rows.is_full.tolist(), strict=True))
        settings = sorted(
            SharedSetting(microbatch_size=size, recomputation="full" if is_full else "flash")
            for size, is_full in kinds
        )
        own = [proposed(ranked, _has(rows, one), self.num_proposals) for one in settings]
        plans = _bound(case, ranked, own)
        response_s = time.perf_counter() - start_s
        return {
            setting: _decision(plan, response_s)
            for setting, plan in zip(settings, plans, strict=True)
        }

    def _ranked(self, case: LocalCase) -> Ranked:
        options = options_of(case)
        seen = observe(case, options)
        return Ranked(
            options=options,
            works=works_of(case, options),
            by_policy=np.argsort(-self.policy.scores(seen), kind="stable"),
            by_estimate=np.argsort(seen.estimate_s, kind="stable"),
        )

    def _remembered(self, case: LocalCase) -> Ranked:
        """Ranked options of a case, cached: a decision needs them for every setting."""
        if case not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[case] = self._ranked(case)
        return self._known[case]

    @cached_property
    def _known(self) -> dict[LocalCase, Ranked]:
        return {}


def _bound(case: LocalCase, ranked: Ranked, groups: Sequence[Sequence[int]]) -> list[LocalPlan]:
    return each_quickly_bound(case, ranked.options, ranked.works, groups)


def proposed(ranked: Ranked, is_allowed: np.ndarray, count: int) -> list[int]:
    """Rows to bind of those allowed (N,): by turns from both rankings, each once."""
    firsts = (
        ranking[is_allowed[ranking]][:count].tolist()
        for ranking in (ranked.by_policy, ranked.by_estimate)
    )
    return list(dict.fromkeys(chain.from_iterable(zip(*firsts, strict=True))))[:count]


def _has(rows: Rows, setting: SharedSetting) -> np.ndarray:
    is_full = setting.recomputation == "full"
    return np.asarray((rows.microbatch_size == setting.microbatch_size) & (rows.is_full == is_full))


def _decision(plan: LocalPlan, response_s: float) -> LocalDecision:
    return LocalDecision(
        parallelism=plan.option.parallelism,
        microbatch_size=plan.option.microbatch_size,
        recomputation=plan.option.recomputation,
        binding=plan.binding,
        seconds_per_sequence=plan.seconds_per_sequence,
        response_s=response_s,
    )
