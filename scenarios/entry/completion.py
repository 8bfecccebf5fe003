"""Print the completion of a shell for ``eastwest``: its commands, their flags and words."""

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Literal

from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.command_line import PRINT_FLAGS
from des.base.flags import parse, required
from scenarios.entry import command as entry_command
from scenarios.entry.table import COMMANDS

PROG = "python -m scenarios.entry.completion"
WORDS = "words"
"""First argument on which the words that may stand last are printed, for the scripts below."""

SCRIPTS = {
    "bash": f"""\
_eastwest() {{
    local IFS=$'\\n'
    COMPREPLY=($(eastwest completion {WORDS} "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null))
}}
complete -o default -F _eastwest eastwest
""",
    "zsh": f"""\
#compdef eastwest
_eastwest() {{
    local -a found
    found=("${{(@f)$(eastwest completion {WORDS} "${{(@)words[2,CURRENT]}}" 2>/dev/null)}}")
    if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}}
compdef _eastwest eastwest
""",
}
"""Script of each shell; both ask ``eastwest`` itself, so new commands and flags are known."""

_EPILOG = f"""\
examples:
  {PROG} bash > ~/.local/share/bash-completion/completions/eastwest
      for every new bash; the folder must exist (mkdir -p)
  source <(eastwest completion zsh)
      for this zsh

exit codes: 0 done; 2 bad input; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Flags of the completion."""

    shell: Literal["bash", "zsh"] = required("shell that the script is for", is_positional=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> None:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == [WORDS]:
        sys.stdout.write("".join(f"{word}\n" for word in completions(arguments[1:])))
        return
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EPILOG)
    sys.stdout.write(SCRIPTS[config.shell])


def completions(words: Sequence[str]) -> list[str]:
    """Words that may stand in the place of the last one, which may be begun; none: file names."""
    *before, begun = words or ("",)
    if not before:
        return [each.name for each in COMMANDS if each.name.startswith(begun)]
    try:
        path, after = _deepest(before)
        lines = _flags_of(path)
    except UsageError:
        return []
    allowed = lines.get(after[-1]) if after else None
    if allowed is not None:
        return [word for word in allowed if word.startswith(begun)] if allowed != ["file"] else []
    return [name for name in lines if name.startswith(begun)]


def _deepest(before: Sequence[str]) -> tuple[list[str], list[str]]:
    """Command and, where it has any, subcommand; the words after them."""
    path, after = [before[0]], list(before[1:])
    if after and after[0] in _flags_of(path) and not after[0].startswith("-"):
        return [*path, after[0]], after[1:]
    return path, after


def _flags_of(path: Sequence[str]) -> dict[str, list[str] | None]:
    """Flags of a command with the words that each takes; or its subcommands."""
    command = entry_command.command_named(path[0])
    shown = io.StringIO()
    try:
        with redirect_stdout(shown), redirect_stderr(io.StringIO()):
            command.run([*path[1:], PRINT_FLAGS])
    except SystemExit:
        pass
    lines = (line.partition("\t") for line in shown.getvalue().splitlines())
    return {name: words.split() or None for name, _, words in lines}


if __name__ == "__main__":
    raise SystemExit(main())
