"""Instances as the rules of scaling see them, whichever engine simulates them."""

from collections.abc import Sequence
from typing import Any, Protocol

from des.serving.fleet_settings import Engine
from des.serving.instance_life import Life


class FleetMember(Protocol):
    """An instance of a fleet: its place, its state, and the load on it."""

    number: int
    pool: str
    engine: Engine
    ordered_s: float
    ready_s: float
    next_pool: str | None
    active_s: float | None
    drained_from_s: float | None
    stopped_s: float | None
    life: Life

    @property
    def state(self) -> str:
        """State now."""
        ...

    @property
    def present(self) -> int:
        """Requests there."""
        ...

    @property
    def num_waiting(self) -> int:
        """Requests there that hold no memory."""
        ...

    @property
    def due_tokens(self) -> int:
        """Prompt tokens there that are not read yet."""
        ...

    @property
    def used(self) -> int:
        """Tokens in its KV memory."""
        ...

    @property
    def leaving(self) -> int:
        """Tokens of requests whose KV memory is being sent away."""
        ...

    @property
    def num_gaps(self) -> int:
        """Gaps between tokens written there."""
        ...

    @property
    def gap_sum_s(self) -> float:
        """Sum of these gaps."""
        ...

    @property
    def gap_counts(self) -> list[int]:
        """Numbers of these gaps by their bins."""
        ...

    def busy_until_s(self, now_s: float) -> float:
        """Time worked until now."""
        ...

    def tokens_present(self) -> tuple[int, int]:
        """Tokens that all requests there hold or will read, and the least that one has written."""
        ...

    def give_waiting(self) -> Sequence[Any]:
        """Take away the requests of which nothing is read yet."""
        ...

    def give_up(self) -> Sequence[Any]:
        """Take all requests away; what was held is lost."""
        ...

    def move_out(self) -> None:
        """Let requests be sent to other instances from the end of this iteration on."""
        ...

    def stay(self) -> None:
        """Let requests stay here again."""
        ...

    def forget_prefixes(self) -> None:
        """Drop what its prefix cache holds for no request."""
        ...
