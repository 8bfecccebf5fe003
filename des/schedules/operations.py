"""Orders of operations of a device: the passes of its stages over the microbatches."""

from typing import Literal, NamedTuple

Pass = Literal["F", "B", "D", "W"]
"""Forward pass, whole backward pass, or its two halves: input gradient and weight gradient.

``D`` is on the critical path, as its output travels to the previous stage; ``W`` needs nothing but
the device's own ``D`` and can fill idle time (P. Qi et al., ICLR'24, where they are B and W).
"""

MESSAGE_OF: dict[str, str] = {"F": "F", "B": "B", "D": "B"}
"""Message that a pass waits for and sends on: an activation (F) or a gradient (B). ``W`` has none.
"""


class Operation(NamedTuple):
    """One pass of one stage over one microbatch."""

    kind: Pass
    microbatch: int
    stage: int

    def __str__(self) -> str:
        return f"{self.kind}{self.microbatch} of stage {self.stage}"


Order = tuple[Operation, ...]
"""Operations of one worker, first to last."""

Orders = tuple[Order, ...]
"""One order a worker. Most schedules have a worker a stage; those with several stages (chunks) on
a device have a worker a device."""
