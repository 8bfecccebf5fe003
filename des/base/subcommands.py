"""A table of subcommands: one module each, loaded when its name is given."""

from collections.abc import Mapping, Sequence
from importlib import import_module

from des.base.flags import parse, parse_command


def run_subcommand(
    commands: Mapping[str, tuple[str, str]],
    argv: Sequence[str] | None,
    *,
    package: str,
    prog: str,
    about: str,
    epilog: str,
    exit_codes: str,
) -> int:
    """Run the subcommand that the first argument names and return its exit code.

    Parameters
    ----------
    commands
        Module of each subcommand in the package, with ``Config``, ``run(config)`` and ``EXAMPLES``,
        and what it does in a few words.
    about, epilog
        Texts above and below the flags in the help of the whole.
    exit_codes
        Text below the examples in the help of each subcommand.

    Raises
    ------
    UsageError
        If there is no such subcommand, or a flag of it is wrong.
    """
    name, arguments = parse_command(
        {name: purpose for name, (_, purpose) in commands.items()},
        argv,
        prog=prog,
        description=about,
        epilog=epilog,
    )
    module = import_module(f"{package}.{commands[name][0]}")  # the others take seconds
    config = parse(
        module.Config,
        arguments,
        prog=f"{prog} {name}",
        description=str(module.__doc__),
        epilog=f"{module.EXAMPLES}\n{exit_codes}",
    )
    code: int = module.run(config)
    return code
