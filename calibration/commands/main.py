"""Keep the simulator faithful to ASTRA-sim: measure by it, fit correction factors, check them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from calibration.reference.binaries import ReferenceRunError
from des.base.command import EXIT_CODES, exit_code_of
from des.base.subcommands import run_subcommand

PROG = "python -m calibration"

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "run": ("fit_run", "Fit correction factors: sample, measure, fit, record for what"),
        "check": ("check", "Test stored factors on fresh placements"),
        "kernels": ("fit_kernels", "Fit layer times from shapes to measured iterations"),
        "devices": ("fit_devices", "Fit times of transfers between GPUs to measured all-reduces"),
        "serving": ("fit_serving", "Fit iteration times of inference engines to profiles"),
        "profile": ("profile", "Make a profile of layer times from tables of measured runs"),
        "compare": ("compare", "Run the same placements through unaware, aware, pairwise and des"),
        "export": ("export", "Write a folder that ASTRA-sim runs as it is"),
        "list": ("list_runs", "List the runs of a store, or write them to a file"),
        "show": ("show_run", "Show all that a store holds of one run"),
        "prune": ("prune_runs", "Remove runs from a store"),
    }
)
"""Module of each command, with ``Config``, ``run(config)`` and ``EXAMPLES``; what it does."""

_EXIT_CODES = (
    "exit codes: 0 done; 1 a bound is exceeded (check); 2 bad input, or a reference simulator\n"
    f"  without a result; {EXIT_CODES}"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return exit_code_of(
        lambda: run_subcommand(
            COMMANDS,
            argv,
            package=__package__,
            prog=PROG,
            about=__doc__,
            epilog=_EXIT_CODES,
            exit_codes=_EXIT_CODES,
        ),
        with_output=ReferenceRunError,
    )
