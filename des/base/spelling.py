"""Spelling of commands: ``python -m scenarios.kpi``, or ``eastwest kpi`` where that was typed."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from des.base.speaking import IMPORTED_S, SPEAKER


class Spelling:
    """Names that help texts and errors of this process have for its command."""

    def __init__(self) -> None:
        self._typed: dict[str, str] = {}

    @contextmanager
    def called(self, module: str, typed: str) -> Iterator[None]:
        """Write ``typed`` for ``python -m module`` inside."""
        before = self._typed
        self._typed = before | {f"python -m {module}": typed}
        try:
            yield
        finally:
            self._typed = before

    def of(self, text: str) -> str:
        """Return the text with the names that the user has typed.

        Examples
        --------
        >>> spelling = Spelling()
        >>> with spelling.called("scenarios.kpi", "eastwest kpi"):
        ...     spelling.of("python -m scenarios.kpi --short")
        'eastwest kpi --short'
        """
        for written, typed in self._typed.items():
            text = re.sub(rf"{re.escape(written)}(?![.\w])", typed, text)
        return text


SPELLING = Spelling()
"""Spelling of this process."""


def own_arguments(argv: Sequence[str] | None, prog: str) -> list[str]:
    """Return the arguments given, or those of the process, which then speaks when it is silent.

    ``--quiet`` counts from here on, so that nothing is said while modules of a command load.
    """
    if argv is not None:
        return list(argv)
    SPEAKER.is_quiet = SPEAKER.is_quiet or "--quiet" in sys.argv[1:]
    SPEAKER.listen_to(SPELLING.of(prog), IMPORTED_S)
    return sys.argv[1:]
