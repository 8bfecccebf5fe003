"""Memory that pipelines of a batch lack."""

from des.base.jit import kernel
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import Paces, paced_overflow
from des.compiled.many.steady import Job, Plans


@kernel
def overflows_of(job: Job, paces: Paces, plans: Plans, counts: Whole, overflow: Real) -> None:
    """Write `des.compiled.many.paced.paced_overflow` of all pipelines, (Q,)."""
    for plan in range(overflow.size):
        overflow[plan] = paced_overflow(job, paces, plans, plan, counts[plan])
