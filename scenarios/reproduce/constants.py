"""Fitted constants: the value of each, the rows that it was fitted on, and what checks it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from agents.decision.token_prices import DATA_EXPONENT, DATA_SCALE
from calibration.measured.runs import FITTED_FIGURES
from des.base.command import UsageError
from des.devices.figures_file import shipped_link_figures
from des.figures.figure import Figure, panel_figure
from des.figures.marks import bars_from_zero
from des.figures.palette import BLUE
from des.figures.panels import Axis, named_rows
from des.serving.engines import engine_named, engine_names
from des.world.hosts import BUFFER_SHARE
from des.worlds.geography import round_trip_s
from scenarios.reproduce.cases import existing_cases
from scenarios.reproduce.crosspipe_runs import BLOCKING, INPUT_GRADIENT_S, WEIGHT_GRADIENT_S
from scenarios.reproduce.megatron_bridge_rows import H100_MATMUL_EFFICIENCY
from scenarios.reproduce.report import Reproduction

_UNITS = {"_bytes_per_s": "bytes/s", "_s_per_km": "s/km", "_s": "s"}
_VTRAIN = ("measured/vtrain_multi.json", "measured/vtrain_single.json")
_CROSSPIPE = "crosspipe.json"


class FittedConstants(NamedTuple):
    """Constants that were fitted together, the rows, and the module that fits or checks them.

    ``files`` are those of the rows in the folder of cases; none: the rows are elsewhere, and
    without a module they are not shipped.
    """

    owner: str
    values: Mapping[str, float]
    rows: str
    module: str = ""
    files: tuple[str, ...] = ()


def list_fitted_constants() -> Iterator[FittedConstants]:
    """Yield all fitted constants, each with the value that the simulator uses."""
    kernels = {
        name: value
        for name, value in asdict(FITTED_FIGURES.kernels).items()
        if isinstance(value, float) and name != "attention_share"  # 1: by definition
    }
    kernels["step_latency_s"] = FITTED_FIGURES.step_latency_s
    rows, module = "128 iterations of vTrain", "calibration kernels"
    yield FittedConstants("kernels of A100", kernels, rows, module, _VTRAIN)
    kernels = {"matmul_efficiency": H100_MATMUL_EFFICIENCY}
    rows, module = "6 rows of Llama 3 70B and 405B on H100", "scenarios.reproduce megatron_bridge"
    of_bridge = ("megatron_bridge/rows.csv",)
    yield FittedConstants("kernels of Megatron-Bridge", kernels, rows, module, of_bridge)
    passes = {"input_gradient_s": INPUT_GRADIENT_S, "weight_gradient_s": WEIGHT_GRADIENT_S}
    rows, module = "the row without delay", "scenarios.reproduce crosspipe"
    yield FittedConstants("passes of CrossPipe", passes, rows, module, (_CROSSPIPE,))
    stall = {"share_of_message": float(BLOCKING.endpoints == "blocking")}
    rows = "5 rows of 2 data centres"
    yield FittedConstants("stall of CrossPipe's senders", stall, rows, module, (_CROSSPIPE,))
    rows = "all-reduces of 1 MiB and more in Vidur's network profiles"
    links = asdict(shipped_link_figures())
    for name, own in {
        "other GPUs": links["pooled"],
        **links["models"],
        **links["networks"],
    }.items():
        yield FittedConstants(f"links of {name}", own, rows, "calibration devices")
    rows = "every second cell of the profile, of NVIDIA"
    for name in engine_names():
        times = asdict(engine_named(name).times)
        yield FittedConstants(f"engine {name}", times, rows, "calibration serving")
    least_s = round_trip_s(0.0)
    line = {"least_s": least_s, "slope_s_per_km": (round_trip_s(1e3) - least_s) / 1e3}
    rows = "380 pairs of AWS regions, Skyplane's latency.csv"
    yield FittedConstants("round trips by distance", line, rows)
    rows, module = "one run of 4 MB at a round trip of 80 ms", "scenarios.reproduce real_runs"
    buffers = {"share_of_data": BUFFER_SHARE}
    yield FittedConstants("send buffers of Linux", buffers, rows, module, ("real_runs",))
    law = {"scale": DATA_SCALE, "exponent": DATA_EXPONENT}
    rows = "runs of Hoffmann et al., arXiv 2203.15556, appendix D.3, by them"
    yield FittedConstants("loss by tokens", law, rows)


def reproduce_cases(cases: Path) -> Reproduction:
    """Return the table of fitted constants, whose rows lie in a folder.

    Raises
    ------
    UsageError
        If there is no such folder, or rows are missing in it.
    """
    found = tuple(list_fitted_constants())
    for name in sorted({name for one in found for name in one.files}):
        if not (existing_cases(cases, kind="folder") / name).exists():
            raise UsageError(f"cases: must be a folder with {name}, got {cases}")
    rows = [
        {
            "of": one.owner,
            "constant": name,
            "value": f"{value:.6g}",
            "unit": next((unit for end, unit in _UNITS.items() if name.endswith(end)), "1"),
            "fitted on": one.rows,
            "files": ", ".join(one.files),
            "command": f"python -m {one.module}" if one.module else "",
        }
        for one in found
        for name, value in one.values.items()
    ]
    return Reproduction(
        title="Fitted constants and the rows that they were fitted on",
        frame=pd.DataFrame(rows),
        bounds=(),
        unjudged=(f"{len(rows)} constants, each checked by its own command",),
        shown=("of", "constant", "value", "unit"),
        figure=draw(found),
    )


def draw(found: tuple[FittedConstants, ...]) -> Figure:
    """Return the number of constants that each set of rows holds."""
    counts = [float(len(one.values)) for one in found]
    return panel_figure(
        name="constants",
        title="Constants that were fitted together",
        seen=f"{sum(counts):g} constants from {len(found)} sets of rows.",
        x=Axis(label="constants", low=0.0),
        y=named_rows(one.owner for one in found),
        marks=(bars_from_zero("constants", counts, BLUE),),
        height=0.7 + 0.34 * len(found),
        grid="x",
    )
