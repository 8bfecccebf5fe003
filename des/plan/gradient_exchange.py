"""Exchange of gradients between replicas: when it starts, in which parts, and along which ways."""

from dataclasses import dataclass

from des.base.checks import require_positive
from des.plan.shares import check_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientExchange:
    """Synchronisation times of the replicas: when gradients or parameter changes are summed up.

    Every bucket of a stage starts on its own: with ``overlapped`` as soon as the last backward pass
    has made it, else when the replica's whole pipeline has finished. A bucket holds whole layers,
    of at most ``bucket_bytes`` of gradients or a single larger one; None puts all of a stage into
    one bucket. Replicas sum up in a ring of their order; with a ``tree``, which names an earlier
    replica for each but the first, sums go up from each to that one and the whole sum comes down.

    With ``sharded`` each of R replicas keeps 1/R of the optimiser's state of every layer [1]_: a
    bucket is scattered in R - 1 rounds of the ring instead of 2 (R - 1), each replica updates its
    part, and when all have done so the new weights of a bucket are gathered in R - 1 rounds. The
    next step waits for all of them. Every replica keeps whole weights and gradients; GPUs that hold
    copies of its layers share its part of the state among them.

    References
    ----------
    .. [1] S. Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion parameter
       models", SC'20, section 5.1 (optimiser state partitioning).
    """

    overlapped: bool = True
    bucket_bytes: float | None = None
    tree: tuple[int, ...] = ()
    sharded: bool = False

    def __post_init__(self) -> None:
        if self.bucket_bytes is not None:
            require_positive("gradient exchange", "bucket_bytes", self.bucket_bytes)
        check_tree(self.tree)
        if not isinstance(self.sharded, bool):
            raise ValueError(
                f"gradient exchange: sharded must be True or False, got {self.sharded!r}"
            )
        if self.sharded and self.tree:
            raise ValueError(
                "gradient exchange: tree must be empty where sharded, as parts are scattered in a "
                f"ring; got {self.tree}"
            )


DEFAULT_EXCHANGE = GradientExchange()
"""Gradients summed up in a ring after the last backward pass, all of a stage in one bucket."""
