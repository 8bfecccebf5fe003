"""Agents that decide where layers run, and Gymnasium environments to learn it in.

These are ``EastWest/Placement-v0`` (`agents.flat`), ``EastWest/Scheduling-v0``
(`agents.scheduling`), ``EastWest/Autoscale-v0`` (`agents.serving`) and ``EastWest/Queue-v0``
(`agents.cluster`). Importing this makes them known, now or when Gymnasium is loaded.
"""

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import ModuleType


class _AfterGymnasium(MetaPathFinder):
    """Registers the environments once Gymnasium, which most commands do without, has all it has."""

    def find_spec(self, name: str, path: object, target: ModuleType | None = None) -> None:
        """Find nothing, and look whether the registry is there: other modules follow it."""
        registration = sys.modules.get("gymnasium.envs.registration")
        if hasattr(registration, "register"):
            sys.meta_path.remove(self)
            import_module("agents.environments")


if "gymnasium" in sys.modules:
    import_module("agents.environments")
else:
    sys.meta_path.insert(0, _AfterGymnasium())
