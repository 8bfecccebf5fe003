"""Reader of availability traces: a folder with a JSON file for each zone.

A file is ``{"metadata": {"gap_seconds": 195}, "data": [1, 0, ...]}``: the number of servers that
could be had at each tick, as in the traces of "Can't Be Late" (Z. Wu et al., NSDI'24,
github.com/skypilot-org/spot-traces). They have no licence file: clone them yourself.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from des.base.command import UsageError
from des.base.strict_forms import form_errors
from des.base.text_files import read_json
from des.dynamics.site_course import SiteCourse

_FORM = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False, frozen=True)


class _Metadata(BaseModel):
    model_config = _FORM
    gap_seconds: Annotated[float, Field(gt=0)]


class _Trace(BaseModel):
    model_config = _FORM
    metadata: _Metadata
    data: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]


def read_spot_traces(folder: Path, *, least_servers: int = 1) -> SiteCourse:
    """Read the zones of a folder side by side, from their common begin to the shortest one's end.

    Parameters
    ----------
    folder
        Its ``*.json`` files are zones, named by the files.
    least_servers
        A zone is up where at least as many servers can be had.

    Raises
    ------
    UsageError
        If there is no such folder, or no JSON file in it.
    ValueError
        If a file is no trace, or gaps differ; naming file, field, what is allowed and what came.
    """
    if not folder.is_dir():
        raise UsageError(f"traces: must be a folder of JSON files, got {folder}, which is none")
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise UsageError(f"traces: {folder} must hold *.json files, a zone each, got none")
    traces = [_read(path) for path in paths]
    gap_s = traces[0].metadata.gap_seconds
    for path, trace in zip(paths, traces, strict=True):
        if trace.metadata.gap_seconds != gap_s:
            raise ValueError(
                f"{path}: metadata.gap_seconds must be {gap_s:g} as in {paths[0].name}, got "
                f"{trace.metadata.gap_seconds:g}"
            )
    num_ticks = min(len(trace.data) for trace in traces)
    counts = np.array([trace.data[:num_ticks] for trace in traces]).T
    names = tuple(path.stem for path in paths)
    return SiteCourse(sites=names, tick_s=gap_s, up=counts >= least_servers)


def read_spot_trace(path: Path, *, least_servers: int = 1) -> SiteCourse:
    """Read one zone, as `read_spot_traces` reads all of a folder."""
    trace = _read(path)
    up = np.array(trace.data)[:, np.newaxis] >= least_servers
    return SiteCourse(sites=(path.stem,), tick_s=trace.metadata.gap_seconds, up=up)


def _read(path: Path) -> _Trace:
    content = read_json(path)
    with form_errors(str(path)):
        return _Trace.model_validate(content)
