"""Pasted terminal output without its decoration: escape codes, marks of quotation, line ends."""

import re

_CODES = re.compile(
    r"(?:\x1b|\u241b|\^\[|\\e|\\033|\\x1b|\\u001b)\[[0-9;?]*[A-Za-z]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles of windows
    r"|\[[0-9;]*m(?![a-z])"  # the escape itself was lost
)
_MARKED_HEADER = re.compile(r"(?!GPU\d)(\S+)\s+(?:GPU\d+\s+)+(?:\S+\s+)*?CPU Affinity")
_QUOTED = re.compile(r"(?:\s{0,3}>)+ ?")


def plain_lines(text: str) -> list[str]:
    """Return the lines of a paste: no byte order mark, escape codes, or marks before every line.

    Such marks are those of quotation, and what stands before the header of a matrix: a ``#``, or
    the name of a machine that a tool puts before its lines.

    Tabs and blanks stay as they are; the caller counts lines from 1.

    Examples
    --------
    >>> plain_lines("\\ufeff\\x1b[4m\\tGPU0\\x1b[0m\\r\\n> GPU0\\t X \\r\\n")
    ['\\tGPU0', 'GPU0\\t X ']
    """
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = _CODES.sub("", text.replace("\u00a0", " ").replace("\u200b", ""))
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return _without_mark(
        [
            _QUOTED.sub("", line, count=1) if line.lstrip().startswith(">") else line
            for line in lines
        ]
    )


def _without_mark(lines: list[str]) -> list[str]:
    """Take the mark before the first header away from all lines that begin with it."""
    mark = next((found[1] for line in lines if (found := _MARKED_HEADER.match(line))), None)
    return lines if mark is None else [line.removeprefix(mark) for line in lines]
