"""Streams of conversations: each turn's prompt is all that was said before, and something new."""

from dataclasses import dataclass

import numpy as np

from des.base.checks import require_count, require_non_negative, require_positive
from des.serving.request_streams import poisson_arrivals
from des.serving.requests import Request

_BLOCKS_PER_CONVERSATION = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLaw:
    """Means of a conversation; numbers of turns are geometric, times and tokens exponential.

    The next prompt comes after the answer has been read, at ``read_tokens_per_s``, and a time to
    think: arrivals do not depend on how the requests are served.
    """

    mean_turns: float = 5.0
    think_s: float = 20.0
    system_tokens: int = 1024
    """Tokens that begin every prompt of every conversation."""
    new_tokens: float = 200.0
    """Tokens that a turn adds to the prompt."""
    output_tokens: float = 250.0
    read_tokens_per_s: float = 25.0
    block_tokens: int = 128
    """Tokens of a named block of a prompt."""
    max_tokens: int = 16_000
    """Tokens of a prompt and its answer at most; a conversation ends before a longer turn."""

    def __post_init__(self) -> None:
        owner = "conversations"
        if not self.mean_turns >= 1:
            raise ValueError(f"{owner}: mean_turns must be at least 1, got {self.mean_turns!r}")
        require_non_negative(owner, "think_s", self.think_s)
        for name in ("new_tokens", "output_tokens", "read_tokens_per_s"):
            require_positive(owner, name, getattr(self, name))
        for name in ("system_tokens", "block_tokens", "max_tokens"):
            require_count(owner, name, getattr(self, name))


DEFAULT_LAW = ConversationLaw()


def conversation_requests(
    rate_per_s: float, duration_s: float, seed: int, law: ConversationLaw = DEFAULT_LAW
) -> tuple[Request, ...]:
    """Draw conversations that begin at a constant rate; turns after the end are left out.

    Raises
    ------
    ValueError
        If rate or duration is not positive, or no request is drawn.
    """
    require_positive("conversations", "rate_per_s", rate_per_s)
    require_positive("conversations", "duration_s", duration_s)
    rng = np.random.default_rng(seed)
    begins = poisson_arrivals(rate_per_s, 0.0, duration_s, rng)
    turns = [
        turn
        for number, begin_s in enumerate(begins)
        for turn in _turns(number, begin_s, law, rng)
        if turn[0] < duration_s
    ]
    if not turns:
        raise ValueError(f"conversations: no request is drawn within {duration_s:g} s")
    turns.sort(key=lambda turn: turn[0])
    return tuple(
        Request(
            request_id=number,
            arrival_s=at_s,
            prompt_tokens=prompt,
            output_tokens=output,
            prefix_blocks=_blocks(conversation, prompt, law),
        )
        for number, (at_s, conversation, prompt, output) in enumerate(turns)
    )


def _turns(
    conversation: int, begin_s: float, law: ConversationLaw, rng: np.random.Generator
) -> list[tuple[float, int, int, int]]:
    """Arrival [s], conversation, prompt tokens and output tokens of each turn."""
    found = []
    at_s, said = begin_s, law.system_tokens
    for _ in range(int(rng.geometric(1.0 / law.mean_turns))):
        new, output = (
            1 + int(rng.exponential(mean)) for mean in (law.new_tokens, law.output_tokens)
        )
        if said + new + output > law.max_tokens:
            break
        found.append((at_s, conversation, said + new, output))
        said += new + output
        at_s += output / law.read_tokens_per_s + float(rng.exponential(law.think_s))
    return found


def _blocks(conversation: int, prompt_tokens: int, law: ConversationLaw) -> tuple[int, ...]:
    """Names of the full blocks of a prompt; those of the system prompt are common to all."""
    num_common = law.system_tokens // law.block_tokens
    first = (conversation + 1) * _BLOCKS_PER_CONVERSATION
    return tuple(
        number if number < num_common else first + number
        for number in range(prompt_tokens // law.block_tokens)
    )
