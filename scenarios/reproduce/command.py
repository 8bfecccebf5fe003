"""Compare the simulator with published and measured figures: one command a table."""

import sys
from collections.abc import Callable, Sequence

from des.base.checks import nearest
from des.base.command import EXIT_CODES, UsageError, exit_code_of
from scenarios.reproduce import crosspipe, diloco, sailor, zero_bubble

PROG = "python -m scenarios.reproduce"
COMMANDS: dict[str, tuple[Callable[[Sequence[str] | None], int], str]] = {
    "zero_bubble": (zero_bubble.main, "bubble rates of pipeline schedules (Zero Bubble)"),
    "crosspipe": (crosspipe.main, "seconds per microbatch across data centres (CrossPipe)"),
    "diloco": (diloco.main, "bandwidth that synchronisation needs, per mode (Streaming DiLoCo)"),
    "sailor": (
        sailor.main,
        "iteration times of measured runs, from profiles alone (Sailor)",
    ),
}
"""The main function of each command, and what the command reproduces."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names and return its exit code."""
    return exit_code_of(lambda: _command(sys.argv[1:] if argv is None else argv))


def _command(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else None
    if name in ("-h", "--help"):
        sys.stdout.write(_help())
        return 0
    if name is None:
        raise UsageError(f"{PROG}: table must be one of {', '.join(COMMANDS)}, got none")
    if name not in COMMANDS:
        raise UsageError(f"{PROG}: unknown table {name!r}; {nearest(name, list(COMMANDS))}")
    return COMMANDS[name][0](arguments[1:])


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:{width}}  {about}" for name, (_, about) in COMMANDS.items())
    return (
        f"usage: {PROG} TABLE [--cases FILE_OR_FOLDER] [--out DIR]\n\n{__doc__}\n\n"
        f"tables:\n{lines}\n\n"
        f"{PROG} TABLE --help says more.\n"
        "--cases is a file of published figures; for sailor it is a folder of CSV files.\n"
        "Each writes table.csv, table.md and picture.png to --out.\n"
        "exit codes: 0 every bound that applies is met; 1 one is not; 2 bad input;\n"
        f"  {EXIT_CODES}\n"
    )
