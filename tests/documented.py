"""Commands shown in README, docs and examples, and the table of how tests run each."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scenarios.entry.command import command_named

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
TABLE = ROOT / "tests" / "scenarios_entry" / "documented_commands.txt"

_FENCED = re.compile(r"(?ms)^( *)```(\w*)[^\n]*\n(.*?)^\1```[ ]*$")
_SPAN = re.compile(r"`([^`\n]+)`")
_PROGRAM = (
    r"(?:[.\w]+/)*(?:eastwest|python -[mc]|pytest|make|pip|kubectl|jupyter|astra-sim-\w+)(?= |$)"
)
_IN_SHELL = re.compile(rf"(?:^|[\s;|&(]){_PROGRAM}")
_IN_TEXT = re.compile(rf"(?:\$ |\w+=\S+ |time )*{_PROGRAM}")
_NAMES = re.compile(r"(?m)^\| `eastwest [\w-]+` \| ")
"""Rows of the table of names in docs/reference.md."""
_MODULE = re.compile(r"python -m scenarios\.([a-z]\w*(?:\.\w+)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A command on a page: its shell line without the prompt, and its folder."""

    page: str
    line: str
    folder: str = ""

    @property
    def normal(self) -> str:
        """The line without comment, place of the program and needless spaces, as `eastwest X`."""
        line = re.sub(r"\s#.*$", "", re.sub(r"(\.\./)*\.venv/bin/", "", self.line))
        named = _MODULE.sub(lambda found: f"eastwest {_name_of(found[1])}", line)
        return " ".join(named.split())


def _name_of(module: str) -> str:
    return command_named(module.replace(".", "-")).name


@cache
def shown_on(path: Path) -> tuple[Shown, ...]:
    """Commands of a page, in their order: those of blocks, and spans of code in the text."""
    page, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
    found = [
        (block.start() + place, Shown(page=page, line=line, folder=folder))
        for block in _FENCED.finditer(text)
        if block[2] in ("", "sh")
        for place, (line, folder) in enumerate(_commands_of(block[3], is_shell=bool(block[2])))
    ]
    prose = _FENCED.sub(lambda block: " " * len(block[0]), text)
    prose = _NAMES.sub(lambda row: " " * len(row[0]), prose)
    found += [
        (span.start(), Shown(page=page, line=span[1].removeprefix("$ ")))
        for span in _SPAN.finditer(prose)
        if _IN_TEXT.match(span[1])
    ]
    return tuple(shown for _, shown in sorted(found, key=lambda each: each[0]))


def _commands_of(block: str, *, is_shell: bool) -> list[tuple[str, str]]:
    """Whole commands of a block, joined at backslashes and open quotation marks, with folders.

    A block that is no shell's also holds output: its commands begin their lines.
    """
    found, begun, folder = [], "", ""
    for line in block.replace("\\\n", " ").splitlines():
        begun = f"{begun}\n{line}" if begun else line.removeprefix("$ ")
        if begun.count('"') % 2:
            continue
        if begun.startswith("cd "):
            folder = begun.removeprefix("cd ")
        if _IN_SHELL.search(begun) if is_shell else _IN_TEXT.match(begun):
            found.append((begun, folder))
        begun = ""
    return found


@cache
def ways() -> dict[str, str]:
    """How tests run each command of the table, or why not, by its normal form."""
    found: dict[str, str] = {}
    way = ""
    for line in TABLE.read_text("utf-8").splitlines():
        command = line.strip()
        if line.startswith("  "):
            assert command not in found, f"twice in {TABLE.name}: {command}"
            found[command] = way
        elif command and not line.startswith("#"):
            way = command.removesuffix(":")
    return found


def shortened(line: str, flags: str) -> str:
    """Give a command other flags: in the place of its own of the same names, else at its end."""
    left = ""
    for flag in re.findall(r"--[^-]+(?:-[^-]+)*(?= --|$)", flags):
        name = flag.split()[0]
        line, count = re.subn(rf"{name}[ =](?:\"[^\"]*\"|[^\s-]\S*)", flag, line)
        left += "" if count else f" {flag}"
    return line + left
