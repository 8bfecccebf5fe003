"""Calibration: how far the simulator is off from a reference, and the factors that correct it."""

from calibration.astra_sim import measure, measure_all, run_key
from calibration.binaries import ReferenceRunError
from calibration.case import Case, Measurement
from calibration.corrections_file import read_corrections, write_corrections
from calibration.fidelity import Fidelity, fidelity, fidelity_by_regime, fidelity_table
from calibration.fit import Fit, fit
from calibration.fitted_for import FittedFor
from calibration.prediction import predict
from calibration.sample_settings import REGIMES, PolicyPlans, Regime, WorkloadFamily
from calibration.sampler import Sampler, sample_cases
from calibration.store import Store

__all__ = [
    "REGIMES",
    "Case",
    "Fidelity",
    "Fit",
    "FittedFor",
    "Measurement",
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
    "measure",
    "measure_all",
    "predict",
    "read_corrections",
    "run_key",
    "sample_cases",
    "write_corrections",
]
