"""State of one request in the course of a run of a fleet."""

from dataclasses import dataclass

from des.serving.requests import Request


@dataclass(slots=True, eq=False)
class FleetRequest:
    """One request in the course of a run."""

    request: Request
    number: int
    to_read: int = 0
    """Tokens that must be read before it can write."""
    held: int = 0
    """Tokens in KV memory, or reserved there."""
    written: int = 0
    first_token_s: float | None = None
    end_s: float | None = None
    last_token_s: float = -1.0
    """End of the last token before a pause; negative while there is none."""
    longest_gap_s: float = 0.0
    num_restarts: int = 0
    num_swaps: int = 0
    is_swapped: bool = False
    """Whether its KV memory is in the memory of the host."""
    num_shared: int = 0
    """First blocks of its prompt that it uses in the cache of its instance."""
    cached_tokens: int = 0
    """Prompt tokens that it did not have to read."""
    prompt_instance: int = -1
    token_instance: int = -1

    def forget(self, now_s: float) -> None:
        """Begin again by reading the prompt and what is written; a pause of the tokens begins."""
        self.begin_pause(now_s)
        self.is_swapped = False
        self.to_read = self.held = self.request.prompt_tokens + self.written

    def begin_pause(self, now_s: float) -> None:
        """Note the end of the last token before a pause."""
        if self.written and self.last_token_s < 0:
            self.last_token_s = now_s

    def end_pause(self, now_s: float) -> None:
        """Count a pause between two tokens as a gap."""
        if self.last_token_s >= 0:
            self.longest_gap_s = max(self.longest_gap_s, now_s - self.last_token_s)
            self.last_token_s = -1.0
