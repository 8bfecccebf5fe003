"""One JSON document on stdout in place of text for people, which then goes to stderr."""

import json
import math
import sys
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import IO, Any

from des.base.speaking import SPEAKER


class Document:
    """Answer of one command to ``--json``: begun by its flags, printed when all has gone well.

    In between, stdout is stderr, or nothing with ``--quiet``.
    """

    def __init__(self) -> None:
        self._content: dict[str, object] = {}
        self._aside = ExitStack()
        self._is_begun = False

    def begin(self) -> None:
        """Take stdout for the document."""
        self._is_begun, self._content = True, {}
        aside: IO[str] = StringIO() if SPEAKER.is_quiet else sys.stderr
        self._aside.enter_context(redirect_stdout(aside))

    def add(self, **content: object) -> None:
        """Add to the content: plain values, paths, arrays' numbers and tables, each row an object.

        Numbers that JSON does not have become null. Without ``--json`` nothing is added.
        """
        if self._is_begun:
            self._content |= {name: plain_json(value) for name, value in content.items()}

    def end(self, *, is_whole: bool) -> None:
        """Give stdout back; print the document if it is whole."""
        if not self._is_begun:
            return
        self._aside.close()
        self._is_begun = False
        if is_whole:
            sys.stdout.write(f"{json.dumps(self._content, indent=2, allow_nan=False)}\n")


DOCUMENT = Document()
"""Document of the command of this process."""


def plain_json(value: Any) -> object:
    """Return the value as JSON has it.

    Examples
    --------
    >>> plain_json({"gap": float("nan"), "out": Path("runs"), "seeds": (0, 1)})
    {'gap': None, 'out': 'runs', 'seeds': [0, 1]}
    """
    if hasattr(value, "columns") and hasattr(value, "to_dict"):  # a table of pandas
        value = value.to_dict("records")
    elif hasattr(value, "tolist"):  # a number or an array of NumPy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
