"""Weights that come with the package: ``hi_ppo-0.safetensors`` and so on, by kind and seed."""

from pathlib import Path

SHIPPED = Path(__file__).resolve().parent.parent / "checkpoints"
"""Folder of the files."""


def shipped_weights(kind: str) -> list[Path]:
    """All files of a kind, such as ``hi_ppo``, by seed."""
    return sorted(SHIPPED.glob(f"{kind}-*.safetensors"))


def shipped_weights_of(kind: str, seed: int) -> Path:
    """Return the file of a kind and seed.

    Raises
    ------
    ValueError
        If there is none of that seed; the message lists those there are.
    """
    path = SHIPPED / f"{kind}-{seed}.safetensors"
    if not path.exists():
        known = ", ".join(one.stem.removeprefix(f"{kind}-") for one in shipped_weights(kind))
        raise ValueError(
            f"shipped weights of {kind}: seed must be one of {known or 'none'}; got {seed!r}"
        )
    return path
