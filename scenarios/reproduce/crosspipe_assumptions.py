"""Assumptions of the reproduction of CrossPipe, and the effect of other ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from des import Transport
from scenarios.reproduce.crosspipe_runs import (
    ACTIVATION_BYTES,
    BLOCKING,
    COLUMNS,
    OVERLAPPED,
    WEIGHT_INPUT_BYTES,
    CrossPipeRun,
    Delay,
    DelayRow,
    ScheduleColumn,
)

ERROR_COLUMNS = ("1f1b", "zb_h1", "greedy_1x")
"""Columns whose mean absolute error is bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another explanation of what the plain simulation misses."""

    transport: Transport = OVERLAPPED
    only_elsewhere: bool = False
    overhead_s: float = 0.0

    def transport_of(self, column: ScheduleColumn) -> Transport:
        """Rule for messages in a column."""
        applies = column.from_elsewhere or not self.only_elsewhere
        return self.transport if applies else OVERLAPPED


_ONE_IN_FLIGHT = Transport(endpoints="one_in_flight")
_HALF_DUPLEX = Transport(half_duplex=True)
_RIVALS = {
    "no stall": Rival(),
    "the stall for all schedules": Rival(transport=BLOCKING),
    "one message in flight a sender": Rival(transport=_ONE_IN_FLIGHT),
    "one message in flight a sender, 1f1b and zb_h1 only": Rival(
        transport=_ONE_IN_FLIGHT, only_elsewhere=True
    ),
    "directions that share a wire": Rival(transport=_HALF_DUPLEX),
    "directions that share a wire, 1f1b and zb_h1 only": Rival(
        transport=_HALF_DUPLEX, only_elsewhere=True
    ),
    "20 ms more on the wire a message (best of 5 ms steps on the public rows)": Rival(
        overhead_s=0.020
    ),
}
_STALL_NOTES = (
    "The one constant is the sender stall: the part of the time until its message has arrived for "
    "which a sender does nothing else, 0 or 1.",
    "It is 1 for 1f1b, zb_h1 and zb_v, whose published figures are the same for a latency as for a "
    "transfer of that length, as blocking sends make them.",
    "It is 0 for CrossPipe's own schedules, where latency costs less than transfer; they run on an "
    "engine that keeps sending apart from computing.",
    "That it applies to some columns and not to others is our inference from the published "
    "figures. It was chosen on the five public rows of 2 data centres.",
)
_SHARES = (0.25, 0.5, WEIGHT_INPUT_BYTES / ACTIVATION_BYTES, 1.0)
_SHARE_COLUMNS = ("greedy_1x", "greedy_2x")


def stall_notes(rows: Sequence[DelayRow]) -> list[str]:
    """Say what the sender stall is, and the mean absolute error of other explanations."""
    notes = [*_STALL_NOTES, f"Mean absolute error over {', '.join(ERROR_COLUMNS)} otherwise:"]
    return notes + [f"- {name}: {_mean_error(rows, rival):.2%}" for name, rival in _RIVALS.items()]


def _mean_error(rows: Sequence[DelayRow], rival: Rival) -> float:
    """Mean absolute error of the judged cells, of which there is one."""
    errors = []
    for row in rows:
        for name in judged_columns(row.published):
            column = COLUMNS[name]
            orders = column.orders(CrossPipeRun.of(row.delay, column).pipeline)
            run = CrossPipeRun.of(_longer(row.delay, rival.overhead_s), column)
            ours_s = run.seconds_per_microbatch(orders, rival.transport_of(column))
            errors.append(abs(ours_s / row.published[name] - 1.0))
    return _mean(errors)


def judged_columns(published: Mapping[str, float]) -> list[str]:
    """Published columns that count for the error."""
    return [name for name in ERROR_COLUMNS if name in published]


def _longer(delay: Delay, overhead_s: float) -> Delay:
    """The delay with more time on the wire; where data centres are not apart, none."""
    return delay if delay.is_free else replace(delay, transfer_s=delay.transfer_s + overhead_s)


def share_notes(rows: Sequence[DelayRow]) -> list[str]:
    """Say what part of the activations is kept for W, and how much other parts matter."""
    names = [name for name in _SHARE_COLUMNS if any(name in row.published for row in rows)]
    notes = [
        f"Memory: {WEIGHT_INPUT_BYTES:g} of {ACTIVATION_BYTES:g} parts of the activations are kept "
        "from D to W (assumed, after the zero-bubble paper)."
    ]
    if names:
        notes.append("Mean ratio to the published figure, plain, for other shares:")
    for share in _SHARES if names else ():
        told = [f"{name} {_mean_ratio(rows, name, share):.3f}" for name in names]
        notes.append(f"- {share:.2f}: {', '.join(told)}")
    return notes


def _mean_ratio(rows: Sequence[DelayRow], name: str, share: float) -> float:
    """Mean of ours to published over the rows that have the column, of which there is one."""
    ratios = []
    for row in rows:
        if name in row.published:
            run = CrossPipeRun.of(row.delay, COLUMNS[name], share * ACTIVATION_BYTES)
            ours_s = run.seconds_per_microbatch(COLUMNS[name].orders(run.pipeline))
            ratios.append(ours_s / row.published[name])
    return _mean(ratios)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
