"""One JSON document on stdout in place of text for people, which then goes to stderr."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import IO

from des.base.flags import option
from des.base.speaking import SPEAKER


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFlag:
    """Flag of the commands that can answer with a document."""

    json: bool = option(
        False, "one JSON document on stdout; text for people goes to stderr", is_recorded=False
    )


Answer = Callable[[Mapping[str, object]], None]
"""Takes the content of the document; without ``--json`` it is dropped."""


@contextmanager
def document(wanted: bool) -> Iterator[Answer]:
    """Give the function that takes the content; it is printed when all has gone well.

    Parameters
    ----------
    wanted
        Whether a document is wanted: the value of ``--json``. Inside, stdout is then stderr, or
        nothing with ``--quiet``.

    Raises
    ------
    ValueError
        If a number of the content is NaN or infinite, which JSON does not have.
    """
    content: dict[str, object] = {}
    with _aside() if wanted else nullcontext():
        yield content.update
    if wanted:
        sys.stdout.write(f"{json.dumps(content, indent=2, allow_nan=False)}\n")


@contextmanager
def _aside() -> Iterator[None]:
    aside: IO[str] = StringIO() if SPEAKER.is_quiet else sys.stderr
    with redirect_stdout(aside):
        yield
