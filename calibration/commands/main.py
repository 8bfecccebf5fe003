"""Keep the simulator faithful to ASTRA-sim: measure by it, fit correction factors, check them."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

from calibration.reference.binaries import ReferenceRunError
from des.base.command import EXIT_CODES, exit_code_of
from des.base.flags import parse, parse_command

PROG = "python -m calibration"

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "run": ("fit_run", "Fit correction factors: sample, measure, fit, record for what"),
        "check": ("check", "Test stored factors on fresh placements"),
        "kernels": ("fit_kernels", "Fit layer times from shapes to measured iterations"),
        "devices": ("fit_devices", "Fit times of transfers between GPUs to measured all-reduces"),
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
    return exit_code_of(lambda: _command(argv), with_output=ReferenceRunError)


def _command(argv: Sequence[str] | None) -> int:
    name, arguments = parse_command(
        {name: about for name, (_, about) in COMMANDS.items()},
        argv,
        prog=PROG,
        description=__doc__,
        epilog=_EXIT_CODES,
    )
    module = import_module(f"calibration.commands.{COMMANDS[name][0]}")  # the others take seconds
    config = parse(
        module.Config,
        arguments,
        prog=f"{PROG} {name}",
        description=str(module.__doc__),
        epilog=f"{module.EXAMPLES}\n{_EXIT_CODES}",
    )
    code: int = module.run(config)
    return code
