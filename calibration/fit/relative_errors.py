"""Relative errors of predictions, in parts of the reference."""

import math
from typing import NamedTuple

from calibration.cases.case import Measurement
from des.base.checks import require_positive

LEAST_EXPOSED_FRACTION = 0.1
"""Share of the makespan below which errors of exposed communication are relative to that share.

Where hardly anything is exposed, the rounding of times would else count as an error of many per
cent.
"""


class RelativeErrors(NamedTuple):
    """Relative errors of one case; positive where the prediction is too large."""

    makespan: float
    communication: float
    exposed: float


def relative_errors(predicted: Measurement, reference: Measurement) -> RelativeErrors:
    """Compare what two simulators say about the same case.

    Exposed communication is summed up over the domains. Bytes that the reference does not have at
    all are infinitely many too many.

    Raises
    ------
    ValueError
        If the reference takes no time, or the two are about different numbers of domains.

    Examples
    --------
    >>> reference = Measurement(makespan_s=10.0, communication_bytes=8.0, exposed_s=(1.0, 3.0))
    >>> predicted = Measurement(makespan_s=11.0, communication_bytes=6.0, exposed_s=(2.0, 4.0))
    >>> relative_errors(predicted, reference)
    RelativeErrors(makespan=0.1, communication=-0.25, exposed=0.5)
    """
    require_positive("reference", "makespan_s", reference.makespan_s)
    if len(predicted.exposed_s) != len(reference.exposed_s):
        raise ValueError(
            f"prediction: exposed_s must hold one for each of the {len(reference.exposed_s)} "
            f"domains of the reference, got {len(predicted.exposed_s)}"
        )
    exposed_s = sum(reference.exposed_s)
    least_s = LEAST_EXPOSED_FRACTION * reference.makespan_s
    return RelativeErrors(
        makespan=(predicted.makespan_s - reference.makespan_s) / reference.makespan_s,
        communication=_part(
            predicted.communication_bytes - reference.communication_bytes,
            reference.communication_bytes,
        ),
        exposed=(sum(predicted.exposed_s) - exposed_s) / max(exposed_s, least_s),
    )


def _part(difference: float, whole: float) -> float:
    if difference == 0.0:
        return 0.0
    return difference / whole if whole else math.inf
