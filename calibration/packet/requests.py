"""Requests to the process that holds ns-3: a name and numbers."""

from typing import Any

Request = tuple[Any, ...]
"""Numbers, or tuples of them."""
