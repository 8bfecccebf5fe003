"""The shape of every command: settings whose fields are the flags, and what is done with them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar

from des.base.command import EXIT_CODES, exit_code_of
from des.base.flags import parse, parse_command, parse_given, with_quick_sizes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ConfigT = TypeVar("ConfigT", bound="DataclassInstance")


class Main(Protocol):
    """A whole command: flags in, those of the process unless given, and an exit code out."""

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        """Run the command and return its exit code."""
        ...


def command(
    config_class: type[ConfigT],
    prog: str,
    about: str | None,
    epilog: str,
    *,
    quick: Mapping[str, object] = MappingProxyType({}),
) -> Callable[[Callable[[ConfigT], int | None]], Main]:
    """Make a function of settings a command, as `command_given` does where flags given matter."""
    as_given = command_given(config_class, prog, about, epilog, quick=quick)
    return lambda run: as_given(lambda config, _: run(config))


def command_given(
    config_class: type[ConfigT],
    prog: str,
    about: str | None,
    epilog: str,
    *,
    quick: Mapping[str, object] = MappingProxyType({}),
) -> Callable[[Callable[[ConfigT, frozenset[str]], int | None]], Main]:
    """Make a function of settings and the names of the given ones a command.

    Parameters
    ----------
    prog, about, epilog
        Command line by which it is run, and the texts above and below the flags in its help.
    quick
        Sizes of a run with ``--quick``, where the user gives no others.
    """

    def made(run: Callable[[ConfigT, frozenset[str]], int | None]) -> Main:
        def body(argv: Sequence[str] | None) -> int | None:
            config, given = parse_given(
                config_class, argv, prog=prog, description=about or "", epilog=epilog
            )
            is_quick = bool(quick) and getattr(config, "quick", False)
            return run(with_quick_sizes(config, given, quick) if is_quick else config, given)

        def main(argv: Sequence[str] | None = None) -> int:
            return exit_code_of(lambda: body(argv))

        return main

    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTable:
    """A command that consists of subcommands.

    Attributes
    ----------
    package
        Package of the modules.
    prog
        Command line by which it is run.
    about, examples
        Texts above and below the subcommands in the help of the whole.
    commands
        Module of each subcommand in the package, with ``Config``, ``run(config)`` and ``EXAMPLES``,
        and its purpose in a few words.
    exit_codes
        Exit codes and their meaning, apart from those of an interruption.
    with_output
        Error whose message ends with the output of another program, see `exit_code_of`.
    """

    package: str
    prog: str
    about: str
    commands: Mapping[str, tuple[str, str]]
    examples: str = ""
    exit_codes: str = "0 done; 2 bad input"
    with_output: type[Exception] | tuple[()] = ()

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run a subcommand and return its exit code."""
        return exit_code_of(lambda: self._run(argv), with_output=self.with_output)

    def _run(self, argv: Sequence[str] | None) -> int:
        exit_codes = f"exit codes: {self.exit_codes}; {EXIT_CODES}"
        name, arguments = parse_command(
            {name: purpose for name, (_, purpose) in self.commands.items()},
            argv,
            prog=self.prog,
            description=self.about,
            epilog="\n".join(filter(None, (self.examples, exit_codes))),
        )
        module_name, _ = self.commands[name]  # the only one loaded: all of them take seconds
        module = import_module(f"{self.package}.{module_name}")
        config = parse(
            module.Config,
            arguments,
            prog=f"{self.prog} {name}",
            description=str(module.__doc__),
            epilog=f"{module.EXAMPLES}\n{exit_codes}",
        )
        code: int | None = module.run(config)
        return code or 0
