"""Terms of a whole run: how long it is, and what interrupts it."""

from dataclasses import dataclass

from des.base.checks import require_count, require_non_negative, require_positive
from des.plan.replacement import GPU_HOURS_PER_INTERRUPTION

MOST_RUN_TOKENS = 10**18
"""Most tokens of a run accepted; more is taken for a typing error."""

CHECKPOINT_S = 3600.0
"""Time between checkpoints unless given; a choice, not a measurement. [s]"""


@dataclass(frozen=True, kw_only=True)
class RunTerms:
    """Length of a run, and what stops it.

    Attributes
    ----------
    num_tokens
        Tokens of unchanged training; a plan that needs more for an equal loss trains more.
    gpu_hours_per_interruption
        Mean over all GPUs of the sites in use. [h]
    checkpoint_s
        Time from one checkpoint to the next; an interruption loses half of it on average. [s]
    restart_s
        Time that an interruption takes to restart. [s]
    """

    num_tokens: int
    gpu_hours_per_interruption: float = GPU_HOURS_PER_INTERRUPTION
    checkpoint_s: float = CHECKPOINT_S
    restart_s: float = 0.0

    def __post_init__(self) -> None:
        require_count("run", "num_tokens", self.num_tokens, MOST_RUN_TOKENS)
        require_positive("run", "gpu_hours_per_interruption", self.gpu_hours_per_interruption)
        require_positive("run", "checkpoint_s", self.checkpoint_s)
        require_non_negative("run", "restart_s", self.restart_s)
