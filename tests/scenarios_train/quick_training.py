"""The main command in its quick form."""

QUICK = [
    *("--policy", "flat", "--quick", "--steps", "256", "--evaluation-draws", "2"),
    *("--calibration", "none", "--workers", "1"),
]
"""Without calibration, of which tests/scenarios_train/test_training_calibration.py tells."""

SMALL_JOB = ["--model", "llama2_7b", "--num-layers", "8", "--microbatches", "4"]
"""A job whose placements are few: `exact` takes a quarter of the time."""

NO_PICTURES = ("--figures", "")
"""The report has its figures still; only their files are not drawn."""

SMALL = [*QUICK, *SMALL_JOB]
