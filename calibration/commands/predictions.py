"""Predictions of `des` for many cases."""

from collections.abc import Sequence

from calibration.cases.case import Measurement, PlacementCase
from calibration.commands.console import progress_bar
from des.base.lazy import lazy_imports
from des.plan.corrections import NO_CORRECTIONS, Corrections

with lazy_imports(__name__):
    from calibration.fit import prediction


def predict_all(
    cases: Sequence[PlacementCase], corrections: Corrections = NO_CORRECTIONS
) -> list[Measurement]:
    """Predict cases one after the other, which takes milliseconds each."""
    with progress_bar("des") as progress:
        return [prediction.predict(case, corrections) for case in progress.track(cases)]
