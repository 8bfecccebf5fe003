"""A trained pointer that decides on sites that come and go."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from agents.hi_ppo.spot.task import MOST_OFFERS, OBSERVATION_SIZE, SpotObserver
from agents.ppo.checkpoint import load_checkpoint
from agents.ppo.networks import ActorCritic
from agents.ppo.trained_policy import TrainedPolicy
from agents.replanning.spot.rules import best_offers
from des.dynamics.site_law import SpotLaw
from des.spot.world import NOTHING, SpotView, SpotWorld, Whole

_NUM_DRAWN = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class LearntSpotPolicy:
    """The most likely offers of a network."""

    network: ActorCritic
    observer: SpotObserver

    @classmethod
    def of(
        cls, network: ActorCritic, worlds: Sequence[SpotWorld], laws: Sequence[SpotLaw]
    ) -> "LearntSpotPolicy":
        """Policy of some worlds, and what is known of their sites."""
        return cls(network=network, observer=SpotObserver.of(worlds, laws))

    def choose(self, view: SpotView) -> Whole:
        """Return the offer to hold next, (N,)."""
        observation = torch.from_numpy(self.observer.observe(view))
        with torch.no_grad():
            offers = self.network.greedy(observation)[:, 0].numpy()
        return np.where(self.observer.allowed(view).any(axis=1), offers, NOTHING)


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomOffers:
    """Random proposals with the same look-ahead: the best rated of four offers drawn each time."""

    observer: SpotObserver

    def choose(self, view: SpotView) -> Whole:
        """Return the offer to hold next, (N,); the one held is among those to choose from."""
        allowed = self.observer.allowed(view)
        values = np.where(allowed, self.observer.rule.values(view), -np.inf)
        rng = np.random.default_rng(int(view.time_s.sum()))
        drawn = np.argsort(rng.random(allowed.shape) + ~allowed, axis=1)[:, :_NUM_DRAWN]
        among = np.zeros_like(allowed)
        np.put_along_axis(among, drawn, values=True, axis=1)
        held = np.arange(allowed.shape[1]) == view.held[:, np.newaxis]
        return best_offers(values, allowed & (among | held), view)


def spot_network(path: Path) -> ActorCritic:
    """Read the network of a training.

    Raises
    ------
    CheckpointError
        If the file is no checkpoint, or one of another task.
    """
    trained = TrainedPolicy.from_payload(
        load_checkpoint(path),
        source=path,
        observation_size=OBSERVATION_SIZE,
        action_sizes=(MOST_OFFERS,),
    )
    return trained.network
