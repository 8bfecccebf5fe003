"""Keep the simulator faithful to ASTRA-sim: measure by it, fit correction factors, check them."""

import argparse
from collections.abc import Mapping, Sequence
from types import MappingProxyType, ModuleType

import calibration.commands.check
import calibration.commands.compare
import calibration.commands.export
import calibration.commands.fit_run
import calibration.commands.list_runs
import calibration.commands.prune_runs
import calibration.commands.show_run
from calibration.commands.ending import EXIT_CODES, exit_code_of
from calibration.commands.flags import Parser

COMMANDS: Mapping[str, ModuleType] = MappingProxyType(
    {
        "run": calibration.commands.fit_run,
        "check": calibration.commands.check,
        "compare": calibration.commands.compare,
        "export": calibration.commands.export,
        "list": calibration.commands.list_runs,
        "show": calibration.commands.show_run,
        "prune": calibration.commands.prune_runs,
    }
)
"""Modules with ``add_flags(parser)``, ``run(arguments) -> int`` and ``EXAMPLES``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    parser = Parser(
        prog="python -m calibration",
        description=__doc__,
        epilog=EXIT_CODES,
        allow_abbrev=False,
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        description = str(module.__doc__)
        subparser = subparsers.add_parser(
            name,
            help=description.splitlines()[0].rstrip("."),
            description=description,
            epilog=f"{module.EXAMPLES}\n{EXIT_CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_flags(subparser)
        subparser.set_defaults(run=module.run)
    arguments = parser.parse_args(argv)
    code: int = arguments.run(arguments)
    return code
