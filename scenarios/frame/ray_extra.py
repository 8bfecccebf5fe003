"""Import of the extra ``ray``, only when it is used."""

import importlib
import importlib.util
from types import ModuleType

from des.base.command import UsageError

LOCAL = "local"
"""Value in place of an address: start a Ray on this machine."""


def ray_module(name: str) -> ModuleType:
    """Import one of our modules that import ray.

    Raises
    ------
    UsageError
        If ray is not installed.
    """
    if importlib.util.find_spec("ray") is None:
        raise UsageError("--ray needs the extra ray: pip install 'eastwest[ray]'")
    return importlib.import_module(name)
