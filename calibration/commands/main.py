"""Keep the simulator faithful to ASTRA-sim: measure by it, fit correction factors, check them."""

from calibration.reference.binaries import ReferenceRunError
from des.base.commands import CommandTable

_PROG = "python -m calibration"

TABLE = CommandTable(
    package=__package__,
    prog=_PROG,
    about=__doc__,
    commands={
        "run": ("fit_run", "Fit correction factors: sample, measure, fit, record for what"),
        "check": ("check", "Test stored factors on fresh placements"),
        "kernels": ("fit_kernels", "Fit layer times from shapes to measured iterations"),
        "devices": ("fit_devices", "Fit times of transfers between GPUs to measured all-reduces"),
        "serving": ("fit_serving", "Fit iteration times of inference engines to profiles"),
        "runs": ("fit_logs", "Compare logged steps with the simulator; fit factors to them"),
        "profile": ("profile", "Make a profile of layer times from tables of measured runs"),
        "transports": ("fit_transports", "Fit laws of TCP on a grid of queues, losses and flows"),
        "compare": ("compare", "Run the same placements through unaware, aware, pairwise and des"),
        "export": ("export", "Write a folder that ASTRA-sim runs as it is"),
        "list": ("list_runs", "List the runs of a store, or write them to a file"),
        "show": ("show_run", "Show all that a store holds of one run"),
        "prune": ("prune_runs", "Remove runs from a store"),
    },
    examples=f"""\
examples:
  {_PROG} compare --samples 8
  {_PROG} run --samples 32 --out runs/calibration
  {_PROG} check --corrections runs/calibration/corrections.json
""",
    exit_codes="0 done; 1 a bound is exceeded (check); 2 bad input, or a reference simulator "
    "without a result",
    with_output=ReferenceRunError,
)

main = TABLE.main
