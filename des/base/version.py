"""Version of the installed package, in one line."""

import platform
from importlib import metadata

DISTRIBUTION = "eastwest"


def find_installed_version() -> str | None:
    """Version that the installation names; None if the source runs without one."""
    found = next(iter(metadata.distributions(name=DISTRIBUTION)), None)
    return found.version if found else None


def version_line() -> str:
    """Return the line of ``--version``."""
    version = find_installed_version() or "not installed"
    return f"{DISTRIBUTION} {version}, Python {platform.python_version()}"
