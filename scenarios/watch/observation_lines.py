"""Observations as lines of JSON, one an event: the plain form that any monitor can write.

``{"time": 1700000000, "link": "East->West", "bandwidth": "4.2Gbps", "latency": "31ms"}``,
``{"time": "2026-11-29T15:00:00Z", "site": "East", "up": false}``,
``{"time": 1700000000, "site": "East", "gpus": 7, "utilisation": 0.5, "memory_occupancy": 0.1}`` or
``{"time": 1700000000, "restart": "95s"}``; a link may be up or not as well.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from pydantic import ValidationError

from agents.replanning.observed_world import Figure, WorldObservation
from des.base.quantities import (
    BANDWIDTH_BYTES_PER_S,
    DURATION_S,
    TIME_S,
    parse_quantity,
)
from des.base.strict_forms import StrictForm, first_error
from des.base.strict_json import parse_json

_OF = {
    "link": ("up", "bandwidth", "latency"),
    "site": ("up", "gpus", "utilisation", "memory_occupancy"),
}
"""Keys of what is observed of a link and of a site."""


class _LineForm(StrictForm):
    """One line: a time, whatever it is about, and at least one figure."""

    time: float | str
    link: str | None = None
    site: str | None = None
    up: bool | None = None
    bandwidth: str | None = None
    latency: str | None = None
    gpus: int | None = None
    utilisation: float | None = None
    memory_occupancy: float | None = None
    restart: str | None = None


def observations_of_line(line: str) -> tuple[WorldObservation, ...]:
    """Read a line.

    Examples
    --------
    >>> (seen,) = observations_of_line('{"time": 60, "link": "A->B", "bandwidth": "8Gbps"}')
    >>> seen.about, seen.figure, seen.value
    ('A->B', 'bandwidth_bytes_per_s', 1000000000.0)

    Raises
    ------
    ValueError
        Naming the key, what is allowed and what came.
    """
    try:
        form = _LineForm.model_validate(parse_json(line))
    except ValidationError as error:
        raise ValueError(first_error(error)) from error
    about = _about(form)
    found = tuple(
        WorldObservation(time_s=time_of(form.time), about=about, figure=figure, value=value)
        for figure, value in _figures(form)
    )
    if not found:
        raise ValueError("must hold a figure, such as bandwidth or up; got none")
    return found


def time_of(given: float | str) -> float:
    """Seconds since 1970 of a number, or of a text as ISO 8601 with its zone."""
    if not isinstance(given, str):
        return float(given)
    try:
        found = datetime.fromisoformat(given)
    except ValueError as error:
        raise ValueError(f"time: must be seconds since 1970 or ISO 8601, got {given!r}") from error
    if found.tzinfo is None:
        raise ValueError(f"time: must have a zone, such as Z or +01:00; got {given!r}")
    return found.timestamp()


def _about(form: _LineForm) -> str:
    """Link or site of a line; empty for a restart. Keys of the other kind are refused."""
    given: dict[Literal["link", "site"], str] = {}
    if form.link is not None:
        given["link"] = form.link
    if form.site is not None:
        given["site"] = form.site
    if len(given) + (form.restart is not None) != 1:
        raise ValueError("must be about one of link, site and restart, each in a line of its own")
    kind, about = next(iter(given.items()), ("restart", ""))
    own = ("time", kind, *_OF.get(kind, ()))
    for key in form.model_fields_set:
        if key not in own:
            raise ValueError(f"{key}: must be left out of a line about a {kind}")
    return about


def _figures(form: _LineForm) -> Iterator[tuple[Figure, float]]:
    quantities: tuple[tuple[str, str | None, Figure], ...] = (
        ("bandwidth", form.bandwidth, "bandwidth_bytes_per_s"),
        ("latency", form.latency, "latency_s"),
        ("restart", form.restart, "restart_s"),
    )
    for key, text, figure in quantities:
        if text is not None:
            try:
                units = {"bandwidth": BANDWIDTH_BYTES_PER_S, "latency": TIME_S}.get(key, DURATION_S)
                yield figure, parse_quantity(text, units)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from error
    if form.up is not None:
        yield "is_there", float(form.up)
    if form.gpus is not None:
        yield "num_gpus", float(form.gpus)
    if form.utilisation is not None:
        yield "utilisation", form.utilisation
    if form.memory_occupancy is not None:
        yield "memory_occupancy", form.memory_occupancy
