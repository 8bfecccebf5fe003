"""Lines of observations: units, times, and each way in which one can be wrong."""

import json

import pytest

from scenarios.watch.folder_source import observations_of_line, time_of


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        (
            {"time": 10, "link": "A->B", "bandwidth": "8Gbps", "latency": "30ms"},
            [("A->B", "bandwidth_bytes_per_s", 1e9), ("A->B", "latency_s", 0.03)],
        ),
        (
            {"time": 10, "link": "A->B", "bandwidth": "8GB/s"},
            [("A->B", "bandwidth_bytes_per_s", 8e9)],
        ),
        ({"time": 10, "link": "A->B", "up": False}, [("A->B", "is_there", 0.0)]),
        (
            {"time": 10, "site": "A", "gpus": 7, "utilisation": 0.5, "memory_occupancy": 0},
            [("A", "num_gpus", 7.0), ("A", "utilisation", 0.5), ("A", "memory_occupancy", 0.0)],
        ),
        ({"time": 10, "restart": "95s"}, [("", "restart_s", 95.0)]),
    ],
)
def test_a_line_is_read_into_figures_in_si_units(line, seen):
    found = observations_of_line(json.dumps(line))

    assert [(one.about, one.figure, one.value) for one in found] == seen
    assert {one.time_s for one in found} == {10.0}


def test_a_time_as_text_has_its_zone():
    assert time_of("2023-11-14T22:13:20Z") == time_of("2023-11-14T23:13:20+01:00") == 1.7e9


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not readable as JSON"),
        ("[]", "dictionary|object|mapping"),
        ('{"time": 1, "link": "A->B"}', "must hold a figure"),
        ('{"time": 1, "link": "A->B", "bandwidth": "0Gbps"}', "must be positive"),
        ('{"time": 1, "link": "A->B", "bandwidth": "-1Gbps"}', "must be positive"),
        ('{"time": 1, "link": "A->B", "bandwidth": 5}', "bandwidth"),
        ('{"time": 1, "link": "A->B", "bandwidth": "5"}', "bandwidth: must be a bandwidth"),
        ('{"time": 1, "link": "A->B", "latency": "3Gbps"}', "latency: unknown unit"),
        ('{"time": 1, "link": "A->B", "gpus": 5}', "gpus: must be left out of a line about a link"),
        ('{"time": 1, "site": "A", "link": "A->B", "up": true}', "must be about one of"),
        ('{"time": 1, "up": true}', "must be about one of"),
        ('{"time": "yesterday", "site": "A", "up": true}', "time: must be seconds"),
        ('{"time": "2023-11-14T22:13:20", "site": "A", "up": true}', "time: must have a zone"),
        ('{"time": -1, "site": "A", "up": true}', "time_s must be"),
        ('{"time": 1, "site": "A", "gpu": 7}', "gpu: unknown key; did you mean 'gpus'"),
        ('{"time": 1, "site": "A", "utilisation": NaN}', "utilisation"),
    ],
)
def test_a_wrong_line_is_refused_by_its_key(line, message):
    with pytest.raises(ValueError, match=message):
        observations_of_line(line)
