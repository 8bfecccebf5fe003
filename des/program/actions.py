"""Numbers of actions and of passes in lists of operations, see `des.program.program`."""

from des.schedules.operations import Pass

COMPUTE, WAIT, SEND, WAIT_SENT, REDUCE, POST, WAIT_TAKEN = range(7)
"""Actions."""

PASSES: tuple[Pass, ...] = ("F", "B", "D", "W")
"""Passes by number; odd ones make gradients of parameters."""

NONE = -1
"""Number of what there is none of."""
