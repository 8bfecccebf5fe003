"""Errors by how the original ends: each class carries an exit code."""

CRITICAL_EXIT = 1
USAGE_EXIT = 255
ABORT_EXIT = 134
"""SIGABRT as a shell shows it: an assertion or an uncaught exception in the original."""
DIVISION_EXIT = 136
SEGMENTATION_EXIT = 139


class AstraSimError(ValueError):
    """An input that cannot be simulated; the message names the file or object and the field."""

    exit_code = CRITICAL_EXIT


class AstraSimUsageError(AstraSimError):
    """Wrong flags or wrong values in the network file."""

    exit_code = USAGE_EXIT


class AbortError(AstraSimError):
    """Error that ends the original in an assertion, wherever it happens."""

    exit_code = ABORT_EXIT


class DivisionError(AstraSimError):
    """Error that ends the original in a division by zero."""

    exit_code = DIVISION_EXIT


class CrashError(AstraSimError):
    """Error that ends the original in a segmentation fault."""

    exit_code = SEGMENTATION_EXIT


class NodeError(AstraSimError):
    """A node that cannot be run; within a timer of its NPU the original logs it and continues."""

    exit_code = ABORT_EXIT
