"""The local agents that come with the package."""

from pathlib import Path

from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.local.policy import load_policy
from agents.ppo.shipped_weights import shipped_weights_of


def shipped_local(seed: int = 0) -> LocalAgent:
    """Return the agent whose policy was trained with a seed, see ``docs/hi-ppo.md``.

    Raises
    ------
    ValueError
        As `shipped_local_file`.
    CheckpointError
        If the file is damaged.
    """
    return LocalAgent(policy=load_policy(shipped_local_file(seed)))


def shipped_local_file(seed: int = 0) -> Path:
    """Return the checkpoint of `shipped_local`.

    Raises
    ------
    ValueError
        If none of that seed is shipped; the message lists those there are.
    """
    return shipped_weights_of("local", seed)
