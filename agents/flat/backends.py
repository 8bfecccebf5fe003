"""Backends by name: ``des`` is built in, other packages offer theirs through an entry point."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, distributions
from inspect import signature

from agents.decision.simulator import Backend

DES = "des"
"""The simulator of this project, which is the default."""

GROUP = "eastwest.backends"
"""Entry points of this group are functions that take options and return a `Backend`."""


def backend_names() -> tuple[str, ...]:
    """Names of all backends that are installed, the built-in one first."""
    return (DES, *sorted({offer.name for offer in _offers()} - {DES}))


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
    offers = [offer for offer in _offers() if offer.name == name]
    if not offers:
        raise ValueError(
            f"environment: backend must be one of those installed, {', '.join(backend_names())}; "
            f"got {name!r}"
        )
    if len(offers) > 1:
        raise ValueError(
            f"environment: backend {name} must be offered by one package, got "
            f"{' and '.join(offer.value for offer in offers)}"
        )
    make = offers[0].load()
    _check_options(name, given, known=tuple(signature(make).parameters))
    backend: Backend = make(**given)
    return backend


def _offers() -> list[EntryPoint]:
    """Entry points of all packages, each once.

    Unlike `importlib.metadata.entry_points` it does not stop at the first metadata of a
    package: an older build's, left in a source folder, would hide those of the installation.
    """
    offers = [
        offer
        for distribution in distributions()
        for offer in distribution.entry_points
        if offer.group == GROUP
    ]
    return list(dict.fromkeys(offers))


def _check_options(name: str, given: Mapping[str, object], known: tuple[str, ...]) -> None:
    unknown = [option for option in given if option not in known]
    if unknown:
        allowed = f"only have {', '.join(known)}" if known else "be left out"
        raise ValueError(
            f"environment: backend_options of backend {name} must {allowed}; "
            f"got {', '.join(map(repr, unknown))}"
        )
