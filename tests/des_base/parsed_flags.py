"""A configuration of every kind of field, and the flags of it."""

from dataclasses import dataclass, field
from pathlib import Path

from des.base.flags import parse


@dataclass(frozen=True, kw_only=True)
class Config:
    """One field of each kind."""

    world: str
    steps: int = field(default=100, metadata={"help": "environment steps, 100% of them"})
    learning_rate: float = 3e-4
    quick: bool = False
    tensorboard: bool = True
    folder: Path = Path("runs")
    limit_s: float | None = None
    seeds: tuple[int, ...] = (0, 1)

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"config: steps must be at least 1, got {self.steps}")


def parsed(*argv: str) -> Config:
    return parse(Config, argv, prog="demo", description="A demonstration.")


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)
