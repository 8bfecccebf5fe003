"""Calibration: how far the simulator is off from a reference, and the factors that correct it."""

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.sampler import Sampler, sample_cases
from calibration.cases.settings import REGIMES, PolicyPlans, Regime, WorkloadFamily
from calibration.fit.corrections_file import read_corrections, write_corrections
from calibration.fit.errors import Fidelity, fidelity, fidelity_by_regime, fidelity_table
from calibration.fit.fit import Fit, fit
from calibration.fit.fitted_for import FittedFor
from calibration.fit.prediction import predict
from calibration.reference.astra_sim import measure_all, measure_case, run_key
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
    "fit",
    "measure_all",
    "measure_case",
    "predict",
    "read_corrections",
    "run_key",
    "sample_cases",
    "write_corrections",
]
