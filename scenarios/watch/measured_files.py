"""Observations of a world in files of measurements, such as those of iperf3 and Prometheus."""

from collections.abc import Iterator
from pathlib import Path

from agents.replanning.observed_world import Figure, WorldObservation
from calibration.measurements.formats import read_measurements
from calibration.measurements.reading import Reading
from calibration.measurements.sites import Sites


def observations_of_file(
    path: Path, sites: Sites, modified_s: float
) -> tuple[WorldObservation, ...]:
    """Read a file of measurements; what says nothing of links or loads of sites is left out.

    Parameters
    ----------
    modified_s
        Time of measurements whose file does not tell, since 1970. [s]

    Raises
    ------
    ValueError
        If it is of no known format or damaged, or it holds nothing to watch.
    """
    readings = read_measurements((path,), sites)
    found = tuple(one for reading in readings for one in _observations(reading, modified_s))
    if not found:
        held = ", ".join(sorted({reading.what for reading in readings}))
        raise ValueError(
            f"{path}: must hold bandwidth or round trips between two sites, or GPU load of one; "
            f"got {held or 'nothing'}"
        )
    return found


def _observations(reading: Reading, modified_s: float) -> Iterator[WorldObservation]:
    """One observation; of series, such as those of Prometheus, one a point."""
    start_s = modified_s if reading.time_s is None else reading.time_s
    points = reading.series if reading.format.startswith("Prometheus") else ((0.0, reading.value),)
    for about, figure, factor in _abouts(reading):
        for after_s, value in points:
            if value > 0.0 or figure == "utilisation":
                yield WorldObservation(
                    time_s=start_s + after_s, about=about, figure=figure, value=factor * value
                )


def _abouts(reading: Reading) -> Iterator[tuple[str, Figure, float]]:
    """Links or sites that a reading is of, with their figure and its factor."""
    ends = reading.link
    if ends is not None and reading.what == "bandwidth":
        yield f"{ends[0]}->{ends[1]}", "bandwidth_bytes_per_s", 1.0
    elif ends is not None and reading.what == "round_trip":
        for source, target in (ends, ends[::-1]):
            yield f"{source}->{target}", "latency_s", 0.5
    elif reading.what == "gpu_load" and reading.source_site:
        yield reading.source_site, "utilisation", 1.0
