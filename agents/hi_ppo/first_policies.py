"""Policies of new weights, which torch draws."""

from functools import lru_cache

import torch

from agents.hi_ppo.moves.move_network import MoveNetwork
from agents.hi_ppo.moves.move_policy import MoveArchitecture, MovePolicy
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.placement_policy import PlacementPolicy


@lru_cache(maxsize=4)  # drawing takes seconds
def untrained(seed: int) -> tuple[PlacementPolicy, MovePolicy]:
    """Draw policies that have learnt nothing."""
    generator = torch.Generator().manual_seed(seed)
    placement = PlacementPolicy(PlacementArchitecture(), generator)
    moves = MovePolicy(network=MoveNetwork(MoveArchitecture(), generator).eval())
    return placement.eval(), moves
