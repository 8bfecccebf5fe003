"""How every command ends, see `des.command`."""

from des.command import EXIT_CODES, INTERRUPTED, READER_GONE, UsageError, exit_code_of

__all__ = ["EXIT_CODES", "INTERRUPTED", "READER_GONE", "UsageError", "exit_code_of"]
