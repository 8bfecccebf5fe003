"""Modules that are loaded when one of their names is first read.

Some libraries take longer to load than most commands run. A module that rarely needs them says::

    with lazy_imports(__name__):
        import pandas as pd
        from agents.planners import table

so type checkers see the libraries themselves, and what loads one is the first ``pd.something``.
"""

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any


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


class _Package:
    """A stand-in for a package, whose names are modules that are loaded late, or types."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> LazyModule:
        return LazyModule(f"{self._name}.{name}")


_ONE_AT_A_TIME = RLock()  # threads that import share the function that imports


@contextmanager
def lazy_imports(importer: str) -> Iterator[None]:
    """Import modules when one of their names is first read, and types for annotations alone.

    Parameters
    ----------
    importer
        ``__name__`` of the module that imports; imports of others are as ever.

    Examples
    --------
    >>> with lazy_imports(__name__):
    ...     from xml.sax import saxutils
    >>> saxutils
    <lazy module 'xml.sax.saxutils'>
    >>> saxutils.escape("<")
    '&lt;'
    """

    def stand_in(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if globals is None or globals.get("__name__") != importer:
            return load(name, globals, locals, fromlist or (), level)
        return _Package(name) if fromlist else LazyModule(name)

    with _ONE_AT_A_TIME:
        load = builtins.__import__
        builtins.__import__ = stand_in
        try:
            yield
        finally:
            builtins.__import__ = load


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
