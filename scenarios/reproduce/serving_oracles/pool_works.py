"""Work of a request on the instances of a pool: one prompt iteration, then token iterations."""

from dataclasses import dataclass, field

from des.serving.requests import Request
from scenarios.reproduce.serving_oracles.courses import RequestCourse


@dataclass(slots=True, eq=False)
class PhaseWork:
    """Prompt work or token work of a request: what is left of it, and how long it has waited."""

    state: "RequestState"
    is_prompt: bool
    cost: int
    """Tokens that it adds to a batch."""
    memory_bytes: int
    left: int
    """Iterations that it still needs."""
    waits: int = 0
    """Iterations that its instance has begun without it; see `counts_from`."""
    counts_from: int = -1
    """Iterations of the instance at which `waits` was 0, while it counts; -1: it does not."""
    is_started: bool = False
    is_halted: bool = False
    in_batch: bool = False
    halted_at_s: float = 0.0
    blocked_s: float = 0.0

    def start(self, now_s: float) -> None:
        """Take note of the first iteration."""
        self.is_started = True
        if self.is_prompt:
            self.state.start_s = now_s
        else:
            self.state.token_start_s = now_s


@dataclass(slots=True, eq=False)
class RequestState(RequestCourse):
    """One request in the course of a simulation."""

    prompt: PhaseWork = field(init=False)
    token: PhaseWork = field(init=False)
    current: PhaseWork = field(init=False)
    """The prompt work until it is finished, then the token work."""
    prompt_bytes: int = 0
    prompt_place: int = -1
    token_place: int = -1
    transfer_start_s: float | None = None
    transfer_end_s: float | None = None
    token_start_s: float | None = None
    is_preempted: bool = False


def request_state(request: Request, kv_bytes_per_token: int) -> RequestState:
    """Make the two works of a request, with the memory that each reserves when it starts."""
    state = RequestState(request=request)
    state.prompt_bytes = kv_bytes_per_token * (request.prompt_tokens + 1)
    state.prompt = PhaseWork(
        state=state,
        is_prompt=True,
        cost=request.prompt_tokens,
        memory_bytes=state.prompt_bytes,
        left=1,
    )
    state.token = PhaseWork(
        state=state,
        is_prompt=False,
        cost=1,
        memory_bytes=kv_bytes_per_token * (request.output_tokens - 1),
        left=request.output_tokens - 1,
    )
    state.current = state.prompt
    return state
