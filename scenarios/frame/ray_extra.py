"""Import of the extra ``ray``, only when it is used."""

import importlib
from types import ModuleType

from des.base.extras import require_extra

LOCAL = "local"
"""Value in place of an address: start a Ray on this machine."""


def ray_module(name: str) -> ModuleType:
    """Import one of our modules that import ray.

    Raises
    ------
    ValueError
        If ray is not installed.
    """
    require_extra("--ray", "ray")
    return importlib.import_module(name)
