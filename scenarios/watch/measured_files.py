"""Observations of links in files of measurements, such as those of iperf3 and Prometheus."""

from collections.abc import Iterator
from pathlib import Path

from agents.replanning.observed_world import WorldObservation
from calibration.measurements import iperf3, prometheus
from calibration.measurements.formats import read_measurements
from calibration.measurements.reading import Reading
from calibration.measurements.sites import Sites


def observations_of_file(
    path: Path, sites: Sites, modified_s: float
) -> tuple[WorldObservation, ...]:
    """Read a file of measurements; what says nothing of links is left out.

    So are round trips of iperf3, which hold the queue that it fills, and loads of GPUs, which the
    watched job itself makes.

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
            f"{path}: must hold bandwidth or round trips between two sites; got {held or 'nothing'}"
        )
    return found


def _observations(reading: Reading, modified_s: float) -> Iterator[WorldObservation]:
    """One observation; of series of Prometheus one a point, and none of 0."""
    start_s, ends = modified_s if reading.time_s is None else reading.time_s, reading.link
    if ends is None:
        return
    has_points = reading.format == prometheus.NAME
    for after_s, value in reading.series if has_points else ((0.0, reading.value),):
        time_s = start_s + after_s
        if value > 0.0 and reading.what == "bandwidth":
            yield WorldObservation(
                time_s=time_s,
                about=f"{ends[0]}->{ends[1]}",
                figure="bandwidth_bytes_per_s",
                value=value,
            )
        elif value > 0.0 and reading.what == "round_trip" and reading.format != iperf3.NAME:
            for source, target in (ends, ends[::-1]):
                about = f"{source}->{target}"
                yield WorldObservation(
                    time_s=time_s, about=about, figure="latency_s", value=value / 2.0
                )
