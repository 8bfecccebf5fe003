"""Destinations of outputs: the next stage that needs them, the border and wire in between."""

from typing import NamedTuple

from des.schedules.pipeline import Border, Pipeline

_FREE = Border()


class Crossing(NamedTuple):
    """The way of one stage's outputs of one kind.

    ``wire`` names the sending and the receiving device. All messages between these two queue for
    it, of whichever stages they are; None where they stay on the device.
    """

    receiver: int
    border: Border
    wire: tuple[int, int] | None


def crossing_of(kind: str, stage: int, pipeline: Pipeline) -> Crossing | None:
    """Way of what a pass puts out; None where no other stage waits for it.

    Examples
    --------
    >>> pipeline = Pipeline.uniform(3, 1, num_devices=2, border=Border(transfer_s=1.0))
    >>> crossing_of("F", 1, pipeline)
    Crossing(receiver=2, border=Border(transfer_s=1.0, latency_s=0.0), wire=(1, 0))
    >>> crossing_of("W", 1, pipeline), crossing_of("D", 0, pipeline)
    (None, None)
    """
    receiver = stage + 1 if kind == "F" else stage - 1
    if kind == "W" or not 0 <= receiver < pipeline.num_stages:
        return None
    here, there = pipeline.device_of_stage[stage], pipeline.device_of_stage[receiver]
    if here == there:
        return Crossing(receiver, _FREE, None)
    border = pipeline.down[stage] if kind == "F" else pipeline.up[receiver]
    return Crossing(receiver, border, (here, there))
