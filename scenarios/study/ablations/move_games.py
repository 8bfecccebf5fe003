"""Episodes among plans of all families as games, to train and to evaluate a move policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agents.decision.frozen_network import freeze_topologies
from agents.hi_ppo.moves.move_augmentation import VariantConfig, variant_of
from agents.hi_ppo.moves.move_config import MoveTrainingConfig
from agents.hi_ppo.moves.move_costs import MoveCosts, with_plans, working_plans
from agents.hi_ppo.moves.move_env import MoveGame, game_of
from agents.hi_ppo.moves.move_network import MoveNetwork
from agents.hi_ppo.moves.move_rules import HORIZONS_EPOCHS, WHOLE_RULES
from agents.hi_ppo.moves.move_training import MoveTrainer, choice_probabilities
from agents.replanning.tables import EpisodeTables, tables_of
from agents.replanning.whole_pool import whole_pool
from des.compiled.many.layout import Whole
from scenarios.suites import SuiteWorld, suite

SIZES = (2, 3, 4, 6, 8)
"""Numbers of sites of the worlds."""

TRAINING = "sites_train"
"""Suite that is trained on; of its worlds those that move."""

FIXED: Mapping[str, int] = {
    "never": 0,
    **{f"H{horizon:g}": WHOLE_RULES.index_of("family", horizon) for horizon in HORIZONS_EPOCHS},
}
"""Rules that are the same in every epoch, by position among those of the policy: to stay, and to
take a change of any kind that pays within a number of epochs."""

_MOST_SEARCHED, _MOST_PLANS = 8, 64
_DRAW_SPAN = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldGames:
    """Settings of the games of one world.

    Attributes
    ----------
    suite, index, seed
        Of the world; the seed is that of its draws too.
    num_draws, num_variants
        Episodes, and those made of them, see `agents.hi_ppo.moves.move_augmentation`. Plans are
        found on networks of the first draw and serve all.
    """

    suite: str
    index: int
    seed: int
    num_draws: int = 1
    num_variants: int = 0

    @property
    def world(self) -> SuiteWorld:
        """The world."""
        return suite(self.suite).with_domains(*SIZES).world(self.index, self.seed)


def training_worlds(count: int, seed: int, num_draws: int, num_variants: int) -> list[WorldGames]:
    """Return the first worlds of `TRAINING` whose links move."""
    found, index = list[WorldGames](), 0
    while len(found) < count:
        one = WorldGames(
            suite=TRAINING, index=index, seed=seed, num_draws=num_draws, num_variants=num_variants
        )
        if one.world.num_epochs > 1:
            found.append(one)
        index += 1
    return found


class EpisodeGames(NamedTuple):
    """Games of the draws of a world, and of their variants; none where a single plan works."""

    drawn: list[MoveGame]
    varied: list[MoveGame]


def games_of(settings: WorldGames) -> EpisodeGames:
    """List the states of all draws and variants of a world."""
    rng = np.random.default_rng([settings.seed, settings.index])
    draws = _tables_of(settings.world, rng.integers(_DRAW_SPAN, size=settings.num_draws).tolist())
    whole = [with_plans(draw, working) for draw in draws if len(working := working_plans(draw)) > 1]
    varied = [
        variant_of(draws, VariantConfig(), rng) for _ in range(settings.num_variants) if whole
    ]
    return EpisodeGames(*(list(map(_game_of, tables)) for tables in (whole, varied)))


def _game_of(tables: EpisodeTables) -> MoveGame:
    return game_of(MoveCosts.of(tables), rule_set=WHOLE_RULES)


def _tables_of(world: SuiteWorld, draw_seeds: Sequence[int]) -> list[EpisodeTables]:
    """Judge the best plans of each family in all draws; those for base figures come first."""
    networks = [freeze_topologies(world, draw_seed) for draw_seed in draw_seeds]
    pool = whole_pool(
        world,
        draw_seeds[0],
        max_searched=_MOST_SEARCHED,
        networks=networks[0],
    )
    plans = pool.plans[:_MOST_PLANS]
    return [
        tables_of(world, draw_seed, plans, networks=held)
        for draw_seed, held in zip(draw_seeds, networks, strict=True)
    ]


def trainer_of(games: Sequence[MoveGame], num_updates: int, seed: int) -> MoveTrainer:
    """Make the trainer of a move policy that may change the family; before it runs it is new."""
    config = MoveTrainingConfig(num_updates=num_updates, episodes_per_update=48)
    return MoveTrainer(games, config=config, seed=seed, rule_set=WHOLE_RULES)


def excess_of_rule(game: MoveGame, rule: int) -> float:
    """Time of an episode under one rule over that of the clairvoyant, less 1."""
    return _excess(game, game.choice_of_rule[:, rule].astype(np.int64))


def excess_of_network(game: MoveGame, network: MoveNetwork) -> float:
    """Time of an episode under the likeliest choices of a policy over the clairvoyant's, less 1."""
    return _excess(game, choice_probabilities(network, game).argmax(axis=1))


def _excess(game: MoveGame, choices: Whole) -> float:
    taken = np.zeros_like(game.cost)
    taken[np.arange(game.num_states), choices] = 1.0
    _, of_state = game.values(taken)
    return float(game.epoch_costs(of_state)[0]) - 1.0
