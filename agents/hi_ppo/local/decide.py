"""The local agent: binds what the policy and an estimate propose, and takes the quickest."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from agents.hi_ppo.local.bound_plans import LocalPlan, each_quickly_bound, works_of
from agents.hi_ppo.local.case import DomainCase, LocalCase
from agents.hi_ppo.local.device_times import firsts_by_rule, times_by_rule
from agents.hi_ppo.local.features import observe
from agents.hi_ppo.local.options import LocalOption, Options, Rows, options_of
from agents.hi_ppo.local.policy import LocalNet, option_scores
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
        Whether `agents.hi_ppo.local.device_times` decided, not the policy.
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
    """Options that fit, how a group of them is bound, and rows (N,) from the best one on.

    ``bind`` takes groups of rows and gives the quickest plan of each. By rule both rankings are
    that of the times.
    """

    options: Options
    bind: Callable[[Sequence[Sequence[int]]], list[LocalPlan]]
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

    policy: LocalNet
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
        ranked = self._rank(case)
        is_allowed = np.ones(len(ranked.options), bool)
        (found,) = ranked.bind([proposed(ranked, is_allowed, self.num_proposals)])
        return _decision(case, found, time.perf_counter() - start_s)

    def menu(self, case: DomainCase, setting: SharedSetting) -> tuple[LocalDecision, ...]:
        """Return the quickest proposal of one setting for each number of devices in a row.

        By rule all options are proposed, and the quickest is the one of least time.

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
        own = np.array(self._propose(case, ranked, setting), dtype=np.int64)
        if not own.size:
            raise InfeasiblePlacementError(
                f"domain {case.domain.name}: no local plan with {setting} fits for "
                f"{case.num_layers} layers"
            )
        counts = rows.pipeline[own]
        plans = ranked.bind([own[counts == count].tolist() for count in np.unique(counts)])
        response_s = time.perf_counter() - start_s
        return tuple(_decision(case, plan, response_s) for plan in plans)

    def alternatives(self, case: DomainCase) -> dict[SharedSetting, LocalDecision]:
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
        own = [self._propose(case, ranked, one) for one in settings]
        plans = ranked.bind(own)
        response_s = time.perf_counter() - start_s
        return {
            setting: _decision(case, plan, response_s)
            for setting, plan in zip(settings, plans, strict=True)
        }

    def _propose(self, case: DomainCase, ranked: Ranked, setting: SharedSetting) -> list[int]:
        is_known = isinstance(case, LocalCase)
        count = self.num_proposals if is_known else len(ranked.options)
        return proposed(ranked, _has(ranked.options.rows, setting), count)

    def _rank(self, case: DomainCase) -> Ranked:
        options = options_of(case)
        if not isinstance(case, LocalCase):
            times_s = times_by_rule(case, options)
            order = np.argsort(times_s, kind="stable")
            bind = partial(firsts_by_rule, case, options, times_s)
            return Ranked(options=options, bind=bind, by_policy=order, by_estimate=order)
        seen = observe(case, options)
        return Ranked(
            options=options,
            bind=partial(each_quickly_bound, case, options, works_of(case, options)),
            by_policy=np.argsort(-option_scores(self.policy, seen), kind="stable"),
            by_estimate=np.argsort(seen.estimate_s, kind="stable"),
        )

    def _remembered(self, case: DomainCase) -> Ranked:
        """Ranked options of a case, cached: a decision needs them for every setting."""
        if not isinstance(case, LocalCase):  # its arrays may be large
            return self._rank(case)
        if case not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[case] = self._rank(case)
        return self._known[case]

    @cached_property
    def _known(self) -> dict[LocalCase, Ranked]:
        return {}


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


def _decision(case: DomainCase, plan: LocalPlan, response_s: float) -> LocalDecision:
    return LocalDecision(
        parallelism=plan.option.parallelism,
        microbatch_size=plan.option.microbatch_size,
        recomputation=plan.option.recomputation,
        binding=plan.binding,
        seconds_per_sequence=plan.seconds_per_sequence,
        response_s=response_s,
        is_by_rule=not isinstance(case, LocalCase),
    )
