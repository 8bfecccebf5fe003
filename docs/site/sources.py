"""An extension of Sphinx: sources in docstrings, ``[1]_``, are numbered for each object alone."""

import re

from sphinx.application import Sphinx

_FOOTNOTE = re.compile(r"(?<!\w)\[(\d+)\](?=_(?!\w))|(?<=\.\. )\[(\d+)\](?= )")


def own_numbers(
    app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Give the footnotes of a docstring names that no other object on its page has."""
    for number, line in enumerate(lines):
        lines[number] = _FOOTNOTE.sub(lambda found: f"[#{name}-{found[1] or found[2]}]", line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Read each docstring before it becomes a part of a page."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", own_numbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
