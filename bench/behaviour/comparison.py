"""Two files of digests side by side."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from bench.behaviour.normalised import FIGURES

Digests = Mapping[str, Mapping[str, str]]
"""SHA-256 by case and file."""


def differences(before: Digests, after: Digests) -> dict[str, list[str]]:
    """Return what differs in each case that does: a line per file, which says how.

    Examples
    --------
    >>> differences({"a": {"x.csv": "1"}}, {"a": {"x.csv": "2"}, "b": {}})
    {'a': ['x.csv: differs'], 'b': ['(case): new']}
    """
    found = {}
    for case in sorted({*before, *after}):
        if case not in before:
            found[case] = ["(case): new"]
        elif case not in after:
            found[case] = ["(case): gone"]
        elif lines := _of_case(before[case], after[case]):
            found[case] = lines
    return found


def _of_case(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    lines = []
    for name in sorted({*before, *after}):
        if before.get(name) == after.get(name) or name.endswith(FIGURES):
            continue
        numbers = name + FIGURES
        if name not in before or name not in after:
            lines.append(f"{name}: {'new' if name not in before else 'gone'}")
        elif numbers in before and before[numbers] == after.get(numbers):
            lines.append(f"{name}: differs, but no figure in it")
        else:
            lines.append(f"{name}: differs")
    return lines


def of_groups(digests: Digests, groups: set[str]) -> dict[str, Mapping[str, str]]:
    """Return the cases of some groups."""
    return {name: files for name, files in digests.items() if name.partition("/")[0] in groups}


def read(path: Path) -> dict[str, dict[str, str]]:
    """Read a file of digests.

    Raises
    ------
    ValueError
        If it cannot be read, or is none.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: must be a file of digests: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise ValueError(f"{path}: must map cases to files and files to digests")
    return found


def write(digests: Digests, path: Path) -> None:
    """Write a file of digests, whole or not at all, in the order of the alphabet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", "utf-8")
    os.replace(unfinished, path)
