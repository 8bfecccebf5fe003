"""Times of one iteration of a batch: by a table, linear, and by tokens, batch and context."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from des.base.checks import require_non_negative, require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationTable:
    """Measured times of an iteration by the number of tokens in its batch.

    An iteration with a prompt takes the prompt column, others the token column. Between the rows
    times are linear; outside, the first or last segment is continued, and never below 0.

    Raises
    ------
    ValueError
        If there are fewer than two rows, they are not increasing, or a time is not positive.
    """

    name: str
    batch_tokens: tuple[float, ...]
    prompt_s: tuple[float, ...]
    token_s: tuple[float, ...]
    mixed_factor: float = 1.0
    """Factor of an iteration with prompts and with tokens."""

    def __post_init__(self) -> None:
        owner = f"iteration table {self.name}"
        lengths = (len(self.batch_tokens), len(self.prompt_s), len(self.token_s))
        if min(lengths) < 2 or len(set(lengths)) > 1:
            raise ValueError(
                f"{owner}: batch_tokens, prompt_s and token_s must have the same number of rows, "
                f"at least 2, got {lengths}"
            )
        if any(after <= before for before, after in pairwise(self.batch_tokens)):
            raise ValueError(f"{owner}: batch_tokens must increase, got {self.batch_tokens}")
        for time_s in (*self.prompt_s, *self.token_s):
            require_positive(owner, "prompt_s and token_s", time_s)
        require_positive(owner, "mixed_factor", self.mixed_factor)

    def iteration_s(self, tokens: int, *, has_prompt: bool, has_token: bool) -> float:
        """Time of one iteration of a batch with that many tokens. [s]

        Examples
        --------
        >>> table = IterationTable(
        ...     name="toy", batch_tokens=(100, 200), prompt_s=(1, 3), token_s=(1, 1)
        ... )
        >>> table.iteration_s(150, has_prompt=True, has_token=False)
        2.0
        """
        column = self.prompt_s if has_prompt else self.token_s
        time_s = interpolated(self.batch_tokens, column, tokens)
        return time_s * self.mixed_factor if has_prompt and has_token else time_s


def interpolated(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Linear interpolation; outside, the first or last segment is continued.

    Examples
    --------
    >>> interpolated((0.0, 1.0, 2.0), (0.0, 1.0, 4.0), 3.0)
    7.0
    """
    low = min(max(bisect_right(xs, x) - 1, 0), len(xs) - 2)
    x_low, y_low = xs[low], ys[low]
    return y_low + (ys[low + 1] - y_low) * ((x - x_low) / (xs[low + 1] - x_low))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTimes:
    """Time linear in new tokens, and in the products of new tokens and the context before them."""

    base_s: float
    per_token_s: float
    per_token_context_s: float

    def __post_init__(self) -> None:
        for field in ("base_s", "per_token_s", "per_token_context_s"):
            require_non_negative("iteration_time", field, getattr(self, field))

    def iteration_s(self, parts: Sequence[tuple[int, int]]) -> float:
        """Time of a batch on one stage. [s]

        Parameters
        ----------
        parts
            For each request its new tokens and the tokens that it has already processed.

        Examples
        --------
        >>> times = ContextTimes(base_s=1.0, per_token_s=0.5, per_token_context_s=0.25)
        >>> times.iteration_s([(2, 4)])
        5.0
        """
        tokens = sum(new for new, _ in parts)
        context = sum(new * (done + new) for new, done in parts)
        return self.base_s + self.per_token_s * tokens + self.per_token_context_s * context
