"""A table of subcommands: one module each, loaded when its name is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from des.base.command import EXIT_CODES, exit_code_of
from des.base.flags import parse, parse_command


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
        code: int = module.run(config)
        return code
