"""More episodes from few: other paces, other prices of moves, other plans to choose from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agents.decision.levels import LEVELS
from agents.hi_ppo.moves.move_costs import with_plans, working_plans
from agents.replanning.tables import EpisodeTables, join_tables
from des.base.checks import require_count
from des.compiled.many.layout import Whole

_FAR = LEVELS.index("split")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantConfig:
    """Range of the random variants of episodes.

    Attributes
    ----------
    strides
        One is drawn; with stride n every n-th epoch is kept, so all lasts n times less long.
    price_factors
        Range of factors on prices of moves, drawn log-uniform, for half of the variants.
    price_epochs
        Range of prices, drawn log-uniform, for the others: what moves from the static plan come
        to in the middle, see `move_price_epochs`. [epochs]
    num_epochs, num_plans
        Most epochs and plans of a variant.
    """

    strides: tuple[int, ...] = (1, 2, 3, 4)
    price_factors: tuple[float, float] = (0.3, 3.0)
    price_epochs: tuple[float, float] = (0.03, 4.0)
    num_epochs: int = 64
    num_plans: int = 48

    def __post_init__(self) -> None:
        if not self.strides:
            raise ValueError("variants: strides must be one or more, got none")
        for stride in self.strides:
            require_count("variants", "strides", stride)
        for name in ("num_epochs", "num_plans"):
            require_count("variants", name, getattr(self, name))
        for name in ("price_factors", "price_epochs"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high < math.inf:
                raise ValueError(
                    f"variants: {name} must be positive, finite and in order, got {(low, high)!r}"
                )


def with_epochs(tables: EpisodeTables, epochs: npt.ArrayLike) -> EpisodeTables:
    """Return the episode that has some of the epochs, by number and in that order.

    Raises
    ------
    ValueError
        If there are none, or one of them is not there.
    """
    chosen = np.asarray(epochs)
    if not chosen.size or not ((chosen >= 0) & (chosen < tables.num_epochs)).all():
        raise ValueError(
            f"tables: epochs must be one or more from 0 to {tables.num_epochs - 1}, got {epochs!r}"
        )
    return replace(tables, iteration_s=tables.iteration_s[chosen], move_s=tables.move_s[chosen])


def with_prices(tables: EpisodeTables, factor: float) -> EpisodeTables:
    """Return the episode in which moves take and send ``factor`` times as much.

    Raises
    ------
    ValueError
        If the factor is not at least 0 and finite.
    """
    if not 0.0 <= factor < math.inf:
        raise ValueError(f"tables: factor must be at least 0 and finite, got {factor!r}")
    never = np.isinf(tables.move_s)
    return replace(
        tables,
        move_s=np.where(never, np.inf, np.where(never, 0.0, tables.move_s) * factor),
        moved_bytes=tables.moved_bytes * factor,
    )


def move_price_epochs(tables: EpisodeTables) -> float:
    """Median price of moves from the static plan to other splits and orders. [epochs]

    The median over moves and epochs; 0 if there are no such moves.
    """
    static = tables.static
    far = tables.level[static] >= _FAR
    prices_s = tables.move_s[:, static, far]
    if not np.isfinite(prices_s).any():
        return 0.0
    return float(np.median(prices_s[np.isfinite(prices_s)]) / tables.epoch_s)


def variant_of(
    draws: Sequence[EpisodeTables], config: VariantConfig, rng: np.random.Generator
) -> EpisodeTables:
    """Draw an episode from several draws of one world that share their plans.

    The draws follow on one another as one long episode, of which epochs are taken at a stride.
    Plans are a random part of those that work in all epochs, and always the static
    one. Nothing else than ``rng`` makes the result differ.

    Raises
    ------
    ValueError
        If there are no draws, their plans differ, or no plan works in all epochs.
    """
    whole = join_tables(draws)
    whole = with_plans(whole, _some_plans(whole, config.num_plans, rng))
    epochs = _some_epochs(whole.num_epochs, config, rng)
    is_factor = bool(rng.random() < 0.5)
    low, high = config.price_factors if is_factor else config.price_epochs
    factor = low * (high / low) ** float(rng.random())
    present = move_price_epochs(whole)
    if not is_factor:
        factor = factor / present if present > 0.0 else 1.0
    return with_prices(with_epochs(whole, epochs), factor)


def _some_plans(tables: EpisodeTables, most: int, rng: np.random.Generator) -> Whole:
    """Numbers of plans that work, in rising order, the quickest at base figures among them."""
    working = working_plans(tables)
    if not len(working):
        raise ValueError("variants: draws must have a plan that works in all epochs, got none")
    static = working[tables.base_iteration_s[working].argmin()]
    others = rng.permutation(working[working != static])[: most - 1]
    return np.sort(np.append(others, static))


def _some_epochs(num_epochs: int, config: VariantConfig, rng: np.random.Generator) -> Whole:
    stride = config.strides[int(rng.integers(len(config.strides)))]
    length = min(config.num_epochs, -(-num_epochs // stride))
    first = int(rng.integers(num_epochs - (length - 1) * stride))
    return first + stride * np.arange(length)
