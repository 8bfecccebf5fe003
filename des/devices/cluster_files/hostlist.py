"""Lists of hosts as Slurm writes them: ``node[001-018,20]``, both ways."""

import itertools
import math
import re
from collections.abc import Iterable, Sequence

from des.base.checks import MOST_ITEMS

_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\],\s]+)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_PLAIN = re.compile(r"[^\[\],=#\s]+")
_NUMBERED = re.compile(r"(.*?)(\d{1,18})", re.DOTALL)


def expand_hosts(text: str) -> list[str]:
    """Names of a list of hosts, in its order.

    Raises
    ------
    ValueError
        If brackets do not match, a range is no range, or the list is too long.

    Examples
    --------
    >>> expand_hosts("dev[8-10],rack[1-2]n[01,3]")
    ['dev8', 'dev9', 'dev10', 'rack1n01', 'rack1n3', 'rack2n01', 'rack2n3']
    """
    names: list[str] = []
    for entry in _entries(text):
        choices: list[list[str]] = []
        end = 0
        for part in _PART.finditer(entry):
            if part.start() != end:
                break
            end = part.end()
            choices.append([part[2]] if part[1] is None else _numbers(part[1], text))
        if end != len(entry) or not entry:
            raise ValueError(f"hosts must be like node[1-4,7], got {text!r}")
        if len(names) + math.prod(map(len, choices)) > MOST_ITEMS:
            raise ValueError(f"hosts must be at most {MOST_ITEMS}, got more in {text[:80]!r}")
        names.extend("".join(parts) for parts in itertools.product(*choices))
    return names


def _entries(text: str) -> list[str]:
    """Parts of a list between the commas outside brackets."""
    entries, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter == "," and depth == 0:
            entries.append(text[start:at].strip())
            start = at + 1
    return [*entries, text[start:].strip()]


def _numbers(ranges: str, text: str) -> list[str]:
    """Numbers of ``001-018,20``, with the zeros in front that the first of a range has."""
    found: list[str] = []
    for entry in ranges.split(","):
        match = _RANGE.fullmatch(entry.strip())
        if match is None:
            raise ValueError(f"hosts: a range must be like 1-4, got {entry!r} in {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MOST_ITEMS:
            raise ValueError(
                f"hosts: a range must go up, by at most {MOST_ITEMS}, got {entry!r} in {text!r}"
            )
        found.extend(str(number).zfill(len(match[1])) for number in range(first, last + 1))
    return found


def compress_hosts(names: Iterable[str]) -> str:
    """List of hosts in the order of the names; runs of numbers become ranges.

    Examples
    --------
    >>> compress_hosts(["n1", "n2", "n3", "n7", "m09", "m10", "login"])
    'n[1-3,7],m[09-10],login'
    """
    groups: list[tuple[str, list[list[str]]]] = []
    for name in names:
        require_host(name)
        match = _NUMBERED.fullmatch(name)
        prefix, number = (match[1], match[2]) if match else (name, "")
        if match and groups and groups[-1][0] == prefix and groups[-1][1]:
            runs = groups[-1][1]
            first, last = runs[-1][0], runs[-1][-1]
            if str(int(last) + 1).zfill(len(first)) == number:
                runs[-1] = [first, number]
            else:
                runs.append([number])
        else:
            groups.append((prefix, [[number]] if match else []))
    return ",".join(_written(prefix, runs) for prefix, runs in groups)


def require_host(name: str) -> None:
    """Refuse a name that a list of hosts cannot hold."""
    if not _PLAIN.fullmatch(name):
        raise ValueError(f"name must be without blanks and any of [],=#, got {name!r}")


def _written(prefix: str, runs: Sequence[Sequence[str]]) -> str:
    if not runs:
        return prefix
    if len(runs) == 1 and len(runs[0]) == 1:
        return prefix + runs[0][0]
    ranges = ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[1]}" for run in runs)
    return f"{prefix}[{ranges}]"
