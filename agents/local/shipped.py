"""The local agents that come with the package."""

from pathlib import Path

from agents.local.decide import LocalAgent
from agents.local.policy import load_policy

_FOLDER = Path(__file__).resolve().parent.parent / "checkpoints"
_STEM = "local-"


def shipped_local(seed: int = 0) -> LocalAgent:
    """Return the agent whose policy was trained with a seed, see ``docs/local-agent.md``.

    Raises
    ------
    ValueError
        If none of that seed is shipped; the message lists those there are.
    CheckpointError
        If the file is damaged.
    """
    known = sorted(path.stem.removeprefix(_STEM) for path in _FOLDER.glob(f"{_STEM}*.pt"))
    if str(seed) not in known:
        raise ValueError(
            f"shipped local agent: seed must be one of {', '.join(known) or 'none'}; got {seed!r}"
        )
    return LocalAgent(policy=load_policy(_FOLDER / f"{_STEM}{seed}.pt"))
