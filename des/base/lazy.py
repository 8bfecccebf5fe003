"""Modules that are loaded when one of their names is first read.

Some libraries take longer to load than most commands run. A module that rarely needs one says::

    if TYPE_CHECKING:
        import pandas as pd
    else:
        pd = lazy("pandas")

so type checkers see the library itself, and what loads it is the first ``pd.something``.
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
        if name == "__wrapped__":  # doctest looks for it everywhere; no module has it
            raise AttributeError(name)
        if self._loaded is None:
            self._loaded = import_module(self._name)
        return getattr(self._loaded, name)

    def __repr__(self) -> str:
        return f"<lazy module {self._name!r}>"


def lazy(name: str) -> LazyModule:
    """Return a stand-in for a module, by its full name."""
    return LazyModule(name)


def lazy_names(
    package: str, homes: Mapping[str, str], rooms: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package whose public names are loaded when read.

    Parameters
    ----------
    package
        Name of the package, ``__name__`` in its own source.
    homes
        Module of each group of names, the names parted by blanks.
    rooms
        Subpackages and modules of the package that can be read as its attributes, parted by blanks.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    own = rooms.split()

    def __getattr__(name: str) -> object:  # noqa: N807 - the name that Python calls
        if name in home_of:
            found: object = getattr(import_module(home_of[name]), name)
        elif name in own:
            found = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, found)
        return found

    def __dir__() -> list[str]:  # noqa: N807 - the name that Python calls
        return sorted({*vars(sys.modules[package]), *home_of, *own})

    return __getattr__, __dir__
