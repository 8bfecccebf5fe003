"""The main command in its quick form."""

QUICK = [
    *("--policy", "flat", "--quick", "--steps", "256", "--evaluation-draws", "2"),
    *("--calibration", "none", "--workers", "1"),
]
"""Without calibration, of which tests/scenarios_train/test_training_calibration.py tells."""
