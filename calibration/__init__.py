"""Calibration: how far the simulator is off from a reference, and the factors that correct it."""

from calibration.astra_sim import measure, measure_all, run_key
from calibration.case import Case, Measurement
from calibration.corrections_file import read_corrections, write_corrections
from calibration.fidelity import Fidelity, fidelity, fidelity_by_regime, fidelity_table
from calibration.fitted_for import FittedFor
from calibration.fitting.fit import Fit, fit
from calibration.prediction import predict
from calibration.programs.binaries import ReferenceRunError
from calibration.runs.store import Store
from calibration.sampling.sampler import Sampler, sample_cases
from calibration.sampling.settings import REGIMES, PolicyPlans, Regime, WorkloadFamily

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
