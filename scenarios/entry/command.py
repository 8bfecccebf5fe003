"""Plan, simulate and learn to schedule large-model training across data centres."""

import sys
from collections.abc import Sequence

from des.base.checks import nearest
from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.help_text import fit_text, terminal_width
from des.base.lazy import lazy_imports
from des.base.spelling import SPELLING
from scenarios.entry.table import COMMANDS, Command

with lazy_imports(__name__):
    from des.base import version

PROG = "eastwest"
MODULE_PROG = "python -m scenarios"


def main(argv: Sequence[str] | None = None, *, prog: str = PROG) -> int:
    """Run the command that the first argument names and return its exit code."""
    return exit_code_of(lambda: _run(argv, prog))


def main_of_module() -> int:
    """Run ``python -m scenarios`` and return its exit code."""
    return main(prog=MODULE_PROG)


def _run(argv: Sequence[str] | None, prog: str) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else "--help"
    if name in ("--help", "-h"):
        sys.stdout.write(f"{fit_text(help_of(prog), terminal_width())}\n")
        return 0
    if name == "--version":
        sys.stdout.write(f"{version.version_line()}\n")
        return 0
    command = command_named(name)
    typed = f"{prog} {command.name}"
    with SPELLING.called(command.module, typed):
        if argv is not None:
            return command.run(arguments[1:])
        sys.argv = [typed, *arguments[1:]]
        return command.run(None)


def command_named(name: str) -> Command:
    """Look up a command by its name, or by the last part of its module.

    Raises
    ------
    UsageError
        If there is none; the message has the nearest name.
    """
    wanted = name.replace("_", "-")
    for command in COMMANDS:
        if wanted in (command.name, command.module.removeprefix("scenarios.").replace("_", "-")):
            return command
    names = [command.name for command in COMMANDS]
    raise UsageError(f"{PROG}: unknown command {name!r}; {nearest(name, names)}")


def help_of(prog: str) -> str:
    """Help of the whole: every command in a line."""
    width = max(len(command.name) for command in COMMANDS)
    lines = "\n".join(f"  {command.name:{width}}  {command.about}" for command in COMMANDS)
    return f"""\
usage: {prog} [-h] [--version] COMMAND ...

{__doc__}

commands:
{lines}

examples:
  {prog} decide --network east_central_west
      where to place Llama 2 70B on three data centres
  {prog} simulate --placement "0*28,1*26,2*26" --out runs/first
      one iteration of a placement by hand, with its timeline

More of each: {prog} COMMAND --help. Every command has --config FILE, --quiet and --version;
docs/reference.md lists which have --json, --quick, --seed, --workers, --resume and --out.

exit codes: 0 done; 1 a bound or target is missed; 2 bad input;
  {EXIT_CODES}"""
