"""Log of a service on stderr, whose lines may name what strangers have sent."""

import logging
import sys

from des.base.names import one_line


class _OneLine(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Line of a record; tracebacks come below it."""
        return one_line(super().formatMessage(record))


def log_to_stderr(level: int) -> None:
    """Log from a level on, a printable line each, without passwords in addresses."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("%(levelname)s %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
