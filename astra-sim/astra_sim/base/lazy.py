"""Modules and names that are loaded when they are first read, so that commands start at once.

A module that rarely needs another says::

    if TYPE_CHECKING:
        import yaml
    else:
        yaml = lazy("yaml")
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType


class LazyModule:
    """A stand-in for a module that is loaded when one of its names is first read."""

    __slots__ = ("_loaded", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._loaded: ModuleType | None = None

    def __getattr__(self, name: str) -> object:
        if self._loaded is None:
            self._loaded = import_module(self._name)
        return getattr(self._loaded, name)


def lazy(name: str) -> LazyModule:
    """Return a stand-in for a module, by its full name."""
    return LazyModule(name)


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package; ``homes`` has the names of each module."""
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> object:  # noqa: N807 - the name that Python calls
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def __dir__() -> list[str]:  # noqa: N807 - the name that Python calls
        return sorted({*vars(sys.modules[package]), *home_of})

    return __getattr__, __dir__
