"""First epoch in which each of some plans is known to a rule without foresight."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from des.compiled.many.layout import Whole


def as_known_from(epochs: npt.ArrayLike, num_plans: int) -> Whole:
    """Return epochs from which on plans are known as an array, (C,).

    Raises
    ------
    ValueError
        If they are not as many whole numbers of at least 0 as there are plans, or none is 0.
    """
    known_from = np.asarray(epochs)
    if (
        known_from.shape != (num_plans,)
        or not np.issubdtype(known_from.dtype, np.integer)
        or known_from.min() != 0
    ):
        raise ValueError(
            f"tables: known_from must be {num_plans} whole numbers of at least 0, with a 0 among "
            f"them, got {epochs!r}"
        )
    return known_from.astype(np.int64)


def join_known_from(
    parts: Sequence[Whole | None], num_epochs: Sequence[int], num_plans: int
) -> Whole | None:
    """First epoch in which each plan is known, over consecutive episodes of ``num_epochs`` each.

    A plan that an episode never yields has the number of all epochs.

    Examples
    --------
    Of two episodes of 3 epochs the first yields the second plan nowhere, the other one in its
    epoch 1:

    >>> join_known_from([np.array([0, 3]), np.array([0, 1])], [3, 3], 2)
    array([0, 4])
    """
    if all(part is None for part in parts):
        return None
    first = np.full(num_plans, sum(num_epochs))
    before = 0
    for part, length in zip(parts, num_epochs, strict=True):
        within = np.zeros(num_plans, dtype=np.int64) if part is None else part
        first = np.where(within < length, np.minimum(first, before + within), first)
        before += length
    return first
