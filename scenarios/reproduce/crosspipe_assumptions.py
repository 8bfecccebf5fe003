"""What the reproduction of CrossPipe assumes, and what other assumptions would come to."""

from collections.abc import Sequence
from dataclasses import replace

from des import Transport
from scenarios.reproduce.crosspipe_runs import (
    ACTIVATION_BYTES,
    BLOCKING,
    COLUMNS,
    OVERLAPPED,
    WEIGHT_INPUT_BYTES,
    Delay,
    Row,
    Run,
)

ERROR_COLUMNS = ("1f1b", "zb_h1", "greedy_1x")
"""Columns whose mean absolute error is bounded."""

OVERHEAD_S = 0.020
_OTHER_STALLS = {
    "no stall": OVERLAPPED,
    "the stall for all schedules": BLOCKING,
    "directions that share a wire": Transport(half_duplex=True),
    "one message in flight a sender": Transport(endpoints="one_in_flight"),
}
_SHARES = (0.25, 0.5, WEIGHT_INPUT_BYTES / ACTIVATION_BYTES, 1.0)
_SHARE_COLUMNS = ("greedy_1x", "greedy_2x")


def stall_note(rows: Sequence[Row]) -> str:
    """Say what the sender stall is, and the mean absolute error of other explanations."""
    errors = {name: _error(rows, transport) for name, transport in _OTHER_STALLS.items()}
    longer = f"{1e3 * OVERHEAD_S:g} ms more on the wire a message, the best of 5 ms steps"
    errors[longer] = _error(rows, OVERLAPPED, overhead_s=OVERHEAD_S)
    told = "; ".join(f"{name} {error:.2%}" for name, error in errors.items())
    return (
        "The one constant is the sender stall: the part of the time until its message has arrived "
        "for which a sender does nothing else, 0 or 1. It is 1 for 1f1b, zb_h1 and zb_v: their "
        "published figures are the same for a latency as for a transfer of that length, as "
        "blocking sends make them. It is 0 for CrossPipe's own schedules, which run on an engine "
        "that keeps sending apart from computing; there latency costs less than transfer. It was "
        "chosen on the five rows of 2 data centres and is not fitted to these cases. Mean "
        f"absolute error over {', '.join(ERROR_COLUMNS)} of other explanations: {told}."
    )


def _error(rows: Sequence[Row], transport: Transport, overhead_s: float = 0.0) -> float:
    errors = []
    for row in rows:
        for name in ERROR_COLUMNS:
            if name in row.seconds_per_microbatch:
                column = COLUMNS[name]
                orders = column.orders(Run.of(row.delay, column).pipeline)
                run = Run.of(_longer(row.delay, overhead_s), column)
                ours_s = run.seconds_per_microbatch(orders, transport)
                errors.append(abs(ours_s / row.seconds_per_microbatch[name] - 1.0))
    return _mean(errors)


def _longer(delay: Delay, overhead_s: float) -> Delay:
    """The delay with more time on the wire; where data centres are not apart, none."""
    if delay.latency_s + delay.transfer_s == 0.0:
        return delay
    return replace(delay, transfer_s=delay.transfer_s + overhead_s)


def share_note(rows: Sequence[Row]) -> str:
    """Say what part of the activations is kept for W, and how much other parts matter."""
    told = []
    for share in _SHARES:
        means = []
        for name in _SHARE_COLUMNS:
            ratios = [
                _seconds_at_share(row, name, share) / row.seconds_per_microbatch[name]
                for row in rows
                if name in row.seconds_per_microbatch
            ]
            means.append(f"{name} {_mean(ratios):.3f}")
        told.append(f"{share:.2f}: {', '.join(means)}")
    return (
        f"Memory: {WEIGHT_INPUT_BYTES:g} of {ACTIVATION_BYTES:g} parts of the activations are kept "
        "from D to W (assumed, after the zero-bubble paper). Mean ratio to the published figure, "
        f"plain, for other shares: {'; '.join(told)}."
    )


def _seconds_at_share(row: Row, name: str, share: float) -> float:
    run = Run.of(row.delay, COLUMNS[name], share * ACTIVATION_BYTES)
    return run.seconds_per_microbatch(COLUMNS[name].orders(run.pipeline))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
