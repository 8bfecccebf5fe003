"""Table of the formats of measurements: one row each; files are recognised by their content."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from calibration.measurements import (
    deepspeed_log,
    infragraph,
    iperf3,
    megatron_log,
    mtr,
    nccl_tests,
    nemo_log,
    ping,
    prometheus,
    rccl_json,
    rocm_matrix,
    server_matrix,
    torchtitan_log,
)
from calibration.measurements.reading import Reading
from calibration.measurements.sites import Sites
from calibration.measurements.source_text import SourceText, source_text


class Format(NamedTuple):
    """One format: its name, how to make such a file, how to tell it, and its reader."""

    name: str
    made_by: str
    holds: Callable[[SourceText], bool]
    read: Callable[[SourceText], Iterator[Reading]]


FORMATS: tuple[Format, ...] = (
    Format(iperf3.NAME, "iperf3 -J", iperf3.holds, iperf3.read),
    Format(ping.NAME, "ping -c 20", ping.holds, ping.read),
    Format(mtr.NAME, "mtr --json", mtr.holds, mtr.read),
    Format(nccl_tests.NAME, "all_reduce_perf, text or -J", nccl_tests.holds, nccl_tests.read),
    Format(rccl_json.NAME, "all_reduce_perf -Z json", rccl_json.holds, rccl_json.read),
    Format(megatron_log.NAME, "output of pretrain_gpt.py", megatron_log.holds, megatron_log.read),
    Format(
        torchtitan_log.NAME, "output of run_train.sh", torchtitan_log.holds, torchtitan_log.read
    ),
    Format(nemo_log.NAME, "output of a recipe of NeMo 2", nemo_log.holds, nemo_log.read),
    Format(deepspeed_log.NAME, "output of deepspeed", deepspeed_log.holds, deepspeed_log.read),
    Format(rocm_matrix.NAME, "rocm-smi --showtopo", rocm_matrix.holds, rocm_matrix.read),
    Format(server_matrix.NAME, "nvidia-smi topo -m", server_matrix.holds, server_matrix.read),
    Format(infragraph.NAME, "ASTRA-sim 3.0, JSON or YAML", infragraph.holds, infragraph.read),
    Format(prometheus.NAME, "/api/v1/query_range?query=...", prometheus.holds, prometheus.read),
)
"""All formats; the first one that holds a file reads it."""


def read_measurements(paths: Sequence[Path], sites: Sites) -> tuple[Reading, ...]:
    """Read files of measurements, and folders of them, and say between which sites each value is.

    Raises
    ------
    ValueError
        If a file cannot be read, is of no format of the table or damaged, or a host is of no site;
        naming the file and the field, what is allowed and what came.
    """
    return tuple(
        _placed(one, path, sites)
        for path in measured_files(paths)
        for one in read_file(source_text(path))
    )


def read_file(file: SourceText) -> list[Reading]:
    """Read one file by the first format that holds it; see `read_measurements`."""
    found = next((one for one in FORMATS if one.holds(file)), None)
    if found is None:
        known = ", ".join(f"{one.name} ({one.made_by})" for one in FORMATS)
        raise file.wrong(f"must be of a known format: {known}; got {file.text.strip()[:40]!r}")
    return list(found.read(file))


def measured_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Files in their order, those of folders by name, without hidden ones."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(one for one in path.rglob("*") if one.is_file())
        yield from (one for one in inside if not one.name.startswith("."))


def _placed(reading: Reading, path: Path, sites: Sites) -> Reading:
    """Give a reading its sites: by its hosts, else by the name of its file or folder."""
    if reading.hosts:
        ends = tuple(dict.fromkeys(_site(reading, host, sites) for host in reading.hosts))
        if len(ends) > 2:
            raise ValueError(
                f"{path}: hosts must be of one site or two, got those of {', '.join(ends)}"
            )
        return replace(reading, source_site=ends[0], target_site=ends[-1])
    source, target = (
        _site(reading, host, sites) if host else "" for host in (reading.source, reading.target)
    )
    if source and target:
        return replace(reading, source_site=source, target_site=target)
    named = [site for site in sites.named_by(path) if site not in (source, target)]
    if not source and target:
        return replace(reading, source_site=named[0] if named else "", target_site=target)
    if source or not named:
        return replace(reading, source_site=source)
    return replace(reading, source_site=named[0], target_site=named[0])


def _site(reading: Reading, host: str, sites: Sites) -> str:
    found = sites.of(host)
    if found is None:
        raise ValueError(
            f"{reading.file}: {host} must be of a site, {', '.join(sites.names)}; got a host that "
            "no pattern fits"
        )
    return found
