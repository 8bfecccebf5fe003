"""Calibration: how far the simulator is off from a reference, and the factors that correct it."""

from typing import TYPE_CHECKING

from des.base.lazy import lazy_names

if TYPE_CHECKING:
    from calibration.cases.case import Measurement, PlacementCase
    from calibration.cases.sampler import Sampler, sample_cases
    from calibration.cases.settings import REGIMES, PolicyPlans, Regime, WorkloadFamily
    from calibration.fit.corrections_file import read_corrections, write_corrections
    from calibration.fit.errors import Fidelity, fidelity, fidelity_by_regime, fidelity_table
    from calibration.fit.fit import Fit
    from calibration.fit.fitted_for import FittedFor
    from calibration.fit.prediction import predict
    from calibration.measuring.measure import measure_all, measure_case, run_key
    from calibration.reference.binaries import ReferenceRunError
    from calibration.runs.store import Store

__all__ = [
    "REGIMES",
    "Fidelity",
    "Fit",
    "FittedFor",
    "Measurement",
    "PlacementCase",
    "PolicyPlans",
    "ReferenceRunError",
    "Regime",
    "Sampler",
    "Store",
    "WorkloadFamily",
    "fidelity",
    "fidelity_by_regime",
    "fidelity_table",
    "measure_all",
    "measure_case",
    "predict",
    "read_corrections",
    "run_key",
    "sample_cases",
    "write_corrections",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "calibration.cases.case": "Measurement PlacementCase",
        "calibration.cases.sampler": "Sampler sample_cases",
        "calibration.cases.settings": "REGIMES PolicyPlans Regime WorkloadFamily",
        "calibration.fit.corrections_file": "read_corrections write_corrections",
        "calibration.fit.errors": "Fidelity fidelity fidelity_by_regime fidelity_table",
        "calibration.fit.fit": "Fit",
        "calibration.fit.fitted_for": "FittedFor",
        "calibration.fit.prediction": "predict",
        "calibration.measuring.measure": "measure_all measure_case run_key",
        "calibration.reference.binaries": "ReferenceRunError",
        "calibration.runs.store": "Store",
    },
    rooms="cases commands fit loop reference runs",
)
