"""Loads and signals read off a view of a fleet."""

from agents.serving.capacity import Load, batch_within
from des.serving.fleet_world import PROMPT, PoolView, View

DEFAULT_OUTPUT_TOKENS = 128.0
"""Mean answer while none has been seen."""


def load_of(view: View, before: Load | None = None) -> Load:
    """Load of the last interval; means that it does not show are those of the load before."""
    prompt = before.prompt_tokens if before else 512.0
    output = before.output_tokens if before else DEFAULT_OUTPUT_TOKENS
    return Load(
        requests_per_s=view.arrivals / view.interval_s,
        prompt_tokens=view.prompt_tokens / view.arrivals if view.arrivals else prompt,
        output_tokens=view.output_tokens / view.finished if view.finished else output,
    )


def pool_requests(pool: PoolView) -> int:
    """Requests that wait or run in a pool."""
    return pool.waiting + pool.running


def target_requests(view: View, name: str, share: float = 0.5) -> float:
    """Target number of requests for one instance of a pool: a share of its most within the SLO.

    The SLO bounds the gaps of a pool that decodes, and the time to read prompts of one that reads.
    """
    load = load_of(view)
    if name == PROMPT:
        times = view.engine_of(name).times
        read_s = times.base_s + times.per_prompt_token_s * load.prompt_tokens
        return max(1.0, share * view.slo.ttft_s / read_s)
    context = load.prompt_tokens + load.output_tokens / 2.0
    return max(1.0, share * batch_within(view.engine_of(name), view.slo, context))
