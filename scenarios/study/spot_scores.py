"""Scores of policies and rules on splits of the frozen benchmark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from agents.hi_ppo.spot.policy import LearntSpotPolicy, RandomOffers, spot_network
from agents.hi_ppo.spot.task import MOST_OFFERS, SpotObserver
from des.base.command import UsageError
from des.spot.world import NOTHING, SpotPolicy, SpotView, Whole
from scenarios.reproduce.spot_methods import METHODS, clairvoyant_tokens, half_width, shares_of
from scenarios.reproduce.spot_suites import SpotCase
from scenarios.study.spot_benchmark import Split, frozen_cases

Score = tuple[float, float]
"""Percent of the clairvoyant's tokens, and half of its 95 % interval over worlds."""

MakePolicy = Callable[[Sequence[SpotCase]], SpotPolicy]
"""Policy that decides in some cases at once."""

_HOUR_S = 3600.0


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenFunction:
    """A user's function from observations to numbers of offers."""

    name: str
    function: Callable[[np.ndarray], Any]
    observer: SpotObserver

    def choose(self, view: SpotView) -> Whole:
        """Return the offer to hold next, (N,); one that cannot be up changes nothing.

        Raises
        ------
        ValueError
            If the function returns other than a number of an offer for each job.
        """
        chosen = np.asarray(self.function(self.observer.observe(view)))
        is_whole = np.issubdtype(chosen.dtype, np.integer)
        if chosen.shape != view.held.shape or not is_whole or not _are_offers(chosen):
            raise ValueError(
                f"{self.name}: must return {len(view.held)} whole numbers from 0 to "
                f"{MOST_OFFERS - 1}, got {chosen.dtype} of {chosen.shape}"
            )
        allowed = self.observer.allowed(view)
        is_allowed = allowed[np.arange(len(chosen)), np.minimum(chosen, allowed.shape[1] - 1)]
        found: Whole = np.where(is_allowed, chosen, NOTHING)
        return found


def _are_offers(chosen: np.ndarray) -> bool:
    return bool(((chosen >= 0) & (chosen < MOST_OFFERS)).all())


def score(make: MakePolicy, split: Split) -> Score:
    """Score a policy; server failures are those of seed 0."""
    cases = frozen_cases(split)
    shares = 100.0 * shares_of(make(cases), cases, clairvoyant_tokens(cases))
    return round(float(shares.mean()), 2), round(half_width(shares), 2)


def rule(name: str, horizon_h: float | None) -> MakePolicy:
    """Return what makes a rule of the benchmark, with a horizon if it has one."""
    if horizon_h is None:
        return lambda cases: RandomOffers(observer=_observer(cases))
    return lambda cases: METHODS[name].make(cases, _HOUR_S * horizon_h)


def policy_of_name(name: str) -> MakePolicy:
    """Return what makes the policy of a checkpoint or of ``MODULE:FUNCTION``.

    Raises
    ------
    UsageError
        If there is no such module or function.
    CheckpointError
        If the file is no checkpoint of the task.
    """
    module, colon, function = name.partition(":")
    if not colon:
        network = spot_network(Path(name))
        return lambda cases: LearntSpotPolicy(network=network, observer=_observer(cases))
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"policy: must be a checkpoint or MODULE:FUNCTION; {error}") from error
    return lambda cases: GivenFunction(name=name, function=found, observer=_observer(cases))


def _observer(cases: Sequence[SpotCase]) -> SpotObserver:
    return SpotObserver.of([case.world for case in cases], [case.law for case in cases])
