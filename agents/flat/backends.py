"""Backends by name: ``des`` is built in, other packages offer theirs through an entry point."""

from collections.abc import Mapping
from inspect import signature

from agents.decision.simulator import Backend
from des.base.offers import offered, offered_names

DES = "des"
"""The simulator of this project, which is the default."""

GROUP = "eastwest.backends"
"""Entry points of this group are functions that take options and return a `Backend`."""


def backend_names() -> tuple[str, ...]:
    """Names of all backends that are installed, the built-in one first."""
    return (DES, *(name for name in offered_names(GROUP) if name != DES))


def backend_named(name: str, options: Mapping[str, object] | None = None) -> Backend | None:
    """Make a backend.

    Parameters
    ----------
    name
        One of `backend_names`.
    options
        Keyword arguments of the backend; ``des`` has none.

    Returns
    -------
    Backend or None
        None for ``des``: nothing judges in place of the task's simulator.

    Raises
    ------
    ValueError
        If no package offers the backend, several do, or it has no such option.
    """
    given = dict(options or {})
    if name == DES:
        _check_options(name, given, known=())
        return None
    try:
        make = offered("environment: backend", GROUP, name)
    except KeyError:
        raise ValueError(
            f"environment: backend must be one of those installed, {', '.join(backend_names())}; "
            f"got {name!r}"
        ) from None
    if not callable(make):
        raise ValueError(f"environment: backend {name} must be a function, got {make!r}")
    _check_options(name, given, known=tuple(signature(make).parameters))
    backend: Backend = make(**given)
    return backend


def _check_options(name: str, given: Mapping[str, object], known: tuple[str, ...]) -> None:
    unknown = [option for option in given if option not in known]
    if unknown:
        allowed = f"only have {', '.join(known)}" if known else "be left out"
        raise ValueError(
            f"environment: backend_options of backend {name} must {allowed}; "
            f"got {', '.join(map(repr, unknown))}"
        )
