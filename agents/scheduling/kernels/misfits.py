"""Memory that pipelines of a batch lack."""

from des.base.jit import kernel
from des.compiled.many.layout import Real
from des.compiled.many.paced import CountedPlans, paced_overflow


@kernel
def overflows_of(batch: CountedPlans, overflow: Real) -> None:
    """Write `des.compiled.many.paced.paced_overflow` of all pipelines, (Q,)."""
    for plan in range(overflow.size):
        overflow[plan] = paced_overflow(batch, plan)
