"""Frozen benchmark of sites that come and go, and scores of policies and rules on its splits.

A job sees only the sites that it holds or asks for. Its law is known, but where a split thins the
stays out. The score is the share of a clairvoyant's tokens.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from agents.hi_ppo.spot.policy import LearntSpotPolicy, RandomOffers, spot_network
from agents.hi_ppo.spot.task import MOST_OFFERS, SpotObserver, draw_spot_world
from agents.replanning.spot.table import METHODS, SpotCase, clairvoyant_tokens, shares_of
from des.base.command import UsageError
from des.base.strict_forms import StrictForm, form_errors
from des.base.strict_json import parse_json
from des.spot.world import NOTHING, SpotPolicy, SpotView, SpotWorld, Whole
from scenarios.reproduce.spot_methods import half_width

DATA = files(__package__) / "data" / "spot_v1.json"


class Split(StrictForm):
    """Worlds of seeds one after the other; ``thinned`` shortens stays up by a factor.

    ``sha256`` is that of courses and offers, see `digest`.
    """

    first_seed: Annotated[int, Field(ge=0)]
    num_worlds: Annotated[int, Field(ge=1)]
    thinned: Annotated[float, Field(ge=1.0)]
    sha256: str

    @property
    def cases(self) -> list[SpotCase]:
        """Worlds, and the law that is known of each."""
        return [self._case(self.first_seed + place) for place in range(self.num_worlds)]

    def _case(self, seed: int) -> SpotCase:
        world, law = draw_spot_world(seed)
        course = world.course.thinned(self.thinned)
        part = replace(world, course=course, sees_all=False)
        return SpotCase(name=str(seed), model="drawn", world=part, law=law)


class RecordedScores(StrictForm):
    """Percent of the clairvoyant's tokens of a rule by split, with half of its 95 % interval.

    ``horizon_h`` is the best one on the split ``train``. [h]
    """

    horizon_h: Annotated[float, Field(gt=0.0)] | None
    percent: dict[str, Annotated[list[float], Field(min_length=2, max_length=2)]]

    def on(self, split: str) -> tuple[float, float]:
        """Percent on a split, and half of its interval."""
        mean, half = self.percent[split]
        return mean, half


class Benchmark(StrictForm):
    """Splits and baselines; ``train`` alone is for training."""

    format: Literal["eastwest-spot-benchmark 1"] = "eastwest-spot-benchmark 1"
    splits: dict[str, Split]
    baselines: dict[str, RecordedScores]

    def split(self, name: str) -> Split:
        """Look a split up.

        Raises
        ------
        UsageError
            If there is none of the name.
        """
        if name not in self.splits:
            allowed = ", ".join(self.splits)
            raise UsageError(f"--splits: must be some of {allowed}, got {name!r}")
        return self.splits[name]


@cache
def benchmark() -> Benchmark:
    """Read the benchmark.

    Raises
    ------
    ValueError
        If its file is no benchmark.
    """
    content = parse_json(DATA.read_text("utf-8"))
    with form_errors(str(DATA)):
        return Benchmark.model_validate(content)


def frozen_cases(split: Split) -> list[SpotCase]:
    """Return the cases of a split.

    Raises
    ------
    ValueError
        If worlds are others than those of the benchmark, as another NumPy might draw them.
    """
    cases = split.cases
    if (found := digest([case.world for case in cases])) != split.sha256:
        raise ValueError(
            f"benchmark: the worlds from seed {split.first_seed} must have the digest "
            f"{split.sha256}, got {found}; scores could not be compared"
        )
    return cases


def digest(worlds: Sequence[SpotWorld]) -> str:
    """SHA-256 of which sites are up when, and of rates and moves to six digits."""
    total = hashlib.sha256()
    for world in worlds:
        offers = world.offers
        total.update(np.packbits(world.course.up).tobytes())
        for values in (offers.kept_tokens_per_s, offers.checkpoint_s, offers.move_s):
            total.update(" ".join(f"{value:.6g}" for value in values.ravel().tolist()).encode())
    return total.hexdigest()


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
