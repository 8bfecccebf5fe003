"""Answers of Prometheus to ``query_range``: series of traffic, load, bandwidth and round trips.

https://prometheus.io/docs/prometheus/latest/querying/api/: ``data.result[].{metric,values}``, a
value a pair of seconds and text. Names of metrics are those of node_exporter, dcgm-exporter and
blackbox_exporter; a recorded series says its unit in its name, and its ends in the labels
``source`` and ``target``.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from calibration.measurements.reading import Quantity, Reading
from calibration.measurements.source_text import JsonField, SourceText, middle_of, quartile_distance

NAME = "Prometheus query_range"


class _Metric(NamedTuple):
    """Quantity of a metric, its factor to SI units, and whether it only counts up."""

    what: Quantity
    factor: float = 1.0
    is_counter: bool = False


METRICS: Mapping[str, _Metric] = MappingProxyType(
    {
        "node_network_transmit_bytes_total": _Metric("traffic", is_counter=True),
        "node_network_receive_bytes_total": _Metric("traffic", is_counter=True),
        "DCGM_FI_DEV_GPU_UTIL": _Metric("gpu_load", 0.01),
        "probe_icmp_duration_seconds": _Metric("round_trip"),
    }
)
"""Metrics of exporters by name."""

ENDINGS: Mapping[str, _Metric] = MappingProxyType(
    {
        "bandwidth_bits_per_second": _Metric("bandwidth", 0.125),
        "bandwidth_bytes_per_second": _Metric("bandwidth"),
        "rtt_seconds": _Metric("round_trip"),
        "rtt_ms": _Metric("round_trip", 1e-3),
        "loss_ratio": _Metric("loss"),
    }
)
"""Ends of the names of recorded series, with the unit."""


def holds(file: SourceText) -> bool:
    """Whether it is an answer with series."""
    return file.has_keys("status", "data")


def read(file: SourceText) -> Iterator[Reading]:
    """Read each series; a counter becomes rates, without intervals in which it began again.

    Raises
    ------
    ValueError
        If the query failed, a metric is unknown, times do not go on, or a value is impossible.
    """
    answer = file.json
    if answer.at("status").value != "success":
        error = answer.get("error")
        raise answer.at("status").wrong(f"success ({error.value if error else 'no error'})")
    if answer.at("data", "resultType").value != "matrix":
        raise answer.at("data", "resultType").wrong("matrix, the answer to query_range")
    results = list(answer.at("data", "result").items())
    if not results:
        raise file.wrong("data.result must hold a series, got none")
    for result in results:
        yield _series_reading(file, result)


def _series_reading(file: SourceText, result: JsonField) -> Reading:
    metric = _metric_of(result)
    labels = {key: str(value) for key, value in _labels(result).items()}
    points = list(_points(result))
    start_s = points[0][0]
    values = list(_rates(points)) if metric.is_counter else points
    if not values:
        raise result.at("values").wrong("two values or more, as a counter has rates between them")
    series = tuple((time_s - start_s, metric.factor * value) for time_s, value in values)
    found = [value for _, value in series]
    host = labels.get("instance", "")
    is_received = "receive" in labels.get("__name__", "")
    return Reading(
        file=str(file.path),
        format=NAME,
        what=metric.what,
        value=middle_of(found),
        samples=len(found),
        spread=quartile_distance(found),
        source=labels.get("source", "" if is_received else host),
        target=labels.get("target", host if is_received else ""),
        time_s=start_s,
        series=series,
        facts=tuple(labels.items()),
    )


def _labels(result: JsonField) -> Mapping[str, object]:
    labels = result.at("metric").value
    if not isinstance(labels, dict):
        raise result.at("metric").wrong("a mapping of labels")
    return labels


def _metric_of(result: JsonField) -> _Metric:
    field = result.at("metric", "__name__")
    name = field.text()
    if name in METRICS:
        return METRICS[name]
    found = next((metric for end, metric in ENDINGS.items() if name.endswith(end)), None)
    if found is None:
        known = (*METRICS, *(f"..._{end}" for end in ENDINGS))
        raise field.wrong(f"one of {', '.join(known)}")
    return found


def _points(result: JsonField) -> Iterator[tuple[float, float]]:
    """Times and values; times must go on."""
    last_s = float("-inf")
    for pair in result.at("values").items():
        if not isinstance(pair.value, list) or len(pair.value) != 2:
            raise pair.wrong("a pair of time and value")
        time, value = pair.items()
        if time.number() <= last_s:
            raise time.wrong(f"above {last_s:.3f}: clocks jumped")
        last_s = time.number()
        yield last_s, value.non_negative()


def _rates(points: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    for (before_s, before), (after_s, after) in pairwise(points):
        if after >= before:
            yield before_s, (after - before) / (after_s - before_s)
