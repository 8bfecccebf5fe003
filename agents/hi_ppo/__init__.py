"""Hi-PPO: a policy that places the layers of a model, and one that decides when to move them."""

from agents.hi_ppo.config import PlacementArchitecture, PlacementConfig
from agents.hi_ppo.judging import LookAhead, PlanJudge
from agents.hi_ppo.placement_checkpoint import load_placement, save_placement
from agents.hi_ppo.placement_policy import PlacementPolicy
from agents.hi_ppo.placement_training import PlacementReport, PlacementTrainer
from agents.hi_ppo.proposals import Candidates, Proposer

__all__ = [
    "Candidates",
    "LookAhead",
    "PlacementArchitecture",
    "PlacementConfig",
    "PlacementPolicy",
    "PlacementReport",
    "PlacementTrainer",
    "PlanJudge",
    "Proposer",
    "load_placement",
    "save_placement",
]
