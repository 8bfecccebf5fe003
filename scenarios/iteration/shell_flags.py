"""Flags of a program's command line in a text or a shell script."""

import re
import shlex
from collections.abc import Iterator, Mapping

_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")
_ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)
_MOST_ROUNDS = 20


def flags_of_text(text: str) -> dict[str, tuple[str, ...]]:
    """Return the values of every ``--flag``, by its name without dashes and with hyphens.

    Lines may go on behind a backslash. Values of shell variables that the text assigns to are put
    in; others stay as they are. Of a flag given twice the last values count, as they do for the
    program.

    Raises
    ------
    ValueError
        If a quotation mark is not closed.

    Examples
    --------
    >>> flags_of_text("TP=8\\nARGS=(--size $TP --use_it) # why\\ntrain.py ${ARGS[@]} --name=a")
    {'size': ('8',), 'use-it': (), 'name': ('a',)}
    """
    variables: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    name = ""
    try:
        for word in _words(text):
            assigned = _ASSIGNMENT.fullmatch(word)
            if word.startswith("--"):
                flag, sign, value = word[2:].partition("=")
                name = flag.replace("_", "-")
                found[name] = [value] if sign else []
            elif assigned is not None or not word.strip("();&"):
                name = ""
                if assigned is not None:
                    variables[assigned[1]] = assigned[2]
            elif name:
                found[name].append(word)
    except ValueError as error:
        raise ValueError(f"not readable as a command line: {error}") from error
    return {
        name: tuple(_with_variables(value, variables) for value in values if value)
        for name, values in found.items()
    }


def _words(text: str) -> Iterator[str]:
    """Words of a text, and those of the flags that a variable holds behind its assignment."""
    words = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars="();&")
    words.whitespace_split = True
    for word in words:
        yield word
        assigned = _ASSIGNMENT.fullmatch(word)
        if assigned is not None and assigned[2].lstrip().startswith("--"):
            yield from _words(assigned[2])


def _with_variables(value: str, variables: Mapping[str, str]) -> str:
    """Put in variables that are known, those within their values too."""
    for _ in range(_MOST_ROUNDS):
        put_in = _VARIABLE.sub(lambda one: variables.get(one[1] or one[2], one[0]), value)
        if put_in == value or len(put_in) > 10_000:
            break
        value = put_in
    return value
