"""Extension of Sphinx: footnotes of docstrings, ``[1]_``, numbered for each object alone."""

import re

from sphinx.application import Sphinx

_DEFINED = re.compile(r"^\s*\.\. \[(\d+)\] ")
_NUMBER = re.compile(r"(?<!\w)\[(\d+)\](?=_(?!\w))_|(?<=\.\. )\[(\d+)\](?= )")


def number_footnotes(  # noqa: PLR0917 - Sphinx calls it
    app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Give the footnotes of a docstring names that no other object on its page has.

    A number that is defined elsewhere, in the docstring of the module, stays a plain number.
    """
    defined = {found[1] for found in map(_DEFINED.match, lines) if found}

    def own(found: re.Match[str]) -> str:
        if found[2]:
            return f"[#{name}-{found[2]}]"
        return f"[#{name}-{found[1]}]_" if found[1] in defined else f"[{found[1]}]"

    lines[:] = [_NUMBER.sub(own, line) for line in lines]


def add_footnote_numbers(app: Sphinx) -> None:
    """Number the footnotes of each docstring before it becomes a part of a page."""
    app.connect("autodoc-process-docstring", number_footnotes)
