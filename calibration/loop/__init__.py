"""Calibration while a policy is trained: at fixed steps and on drift, in the background."""

from calibration.loop.background import BackgroundCalibrator, Calibrator
from calibration.loop.calibration_schedule import Timetable, default_interval_steps
from calibration.loop.entry import WALL_CLOCK_COLUMNS, Entry, factors_text, percent_text
from calibration.loop.logged_subject import LoggedSubject
from calibration.loop.loop import CalibrationLoop
from calibration.loop.region import Choices, Region
from calibration.loop.rounds import CalibrationRound, Order, calibrate
from calibration.loop.training_state import LoopBackend, Subject

__all__ = [
    "WALL_CLOCK_COLUMNS",
    "BackgroundCalibrator",
    "CalibrationLoop",
    "CalibrationRound",
    "Calibrator",
    "Choices",
    "Entry",
    "LoggedSubject",
    "LoopBackend",
    "Order",
    "Region",
    "Subject",
    "Timetable",
    "calibrate",
    "default_interval_steps",
    "factors_text",
    "percent_text",
]
