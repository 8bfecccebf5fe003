"""Fitted constants: the value of each, the rows that it was fitted on, and what checks it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from agents.decision.token_prices import DATA_EXPONENT, DATA_SCALE
from calibration.measured.runs import FITTED_FIGURES
from des.base.command import UsageError
from des.devices.figures_file import shipped_link_figures
from des.figures.figure import Figure
from des.figures.marks import Boxes
from des.figures.palette import BLUE
from des.figures.panels import Axis, Panel
from des.serving.engines import engine_named, engine_names
from des.world.hosts import BUFFER_SHARE
from des.worlds.geography import round_trip_s
from scenarios.reproduce.cases import existing_cases
from scenarios.reproduce.crosspipe_runs import BLOCKING, INPUT_GRADIENT_S, WEIGHT_GRADIENT_S
from scenarios.reproduce.megatron_bridge_rows import H100_MATMUL_EFFICIENCY
from scenarios.reproduce.report import Reproduction

_UNITS = {"_bytes_per_s": "bytes/s", "_s_per_km": "s/km", "_s": "s"}
_VTRAIN = ("measured/vtrain_multi.json", "measured/vtrain_single.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedConstants:
    """Constants that were fitted together.

    Attributes
    ----------
    owner
        Object that holds them.
    files
        Files of the rows in the folder of cases; empty: they are elsewhere.
    command
        Module, behind ``python -m``, that fits or checks them; empty: their rows are not shipped.
    """

    owner: str
    values: Mapping[str, float]
    rows: str
    command: str = ""
    files: tuple[str, ...] = ()


def fitted_constants() -> Iterator[FittedConstants]:
    """Yield all fitted constants, each with the value that the simulator uses."""
    kernels = asdict(FITTED_FIGURES.kernels)
    del kernels["attention_share"]  # 1: by definition
    yield FittedConstants(
        owner="kernels of A100",
        values=kernels | {"step_latency_s": FITTED_FIGURES.step_latency_s},
        rows="128 iterations of vTrain",
        files=_VTRAIN,
        command="calibration kernels",
    )
    yield FittedConstants(
        owner="kernels of Megatron-Bridge",
        values={"matmul_efficiency": H100_MATMUL_EFFICIENCY},
        rows="6 rows of Llama 3 70B and 405B on H100",
        files=("megatron_bridge/rows.csv",),
        command="scenarios.reproduce megatron_bridge",
    )
    yield FittedConstants(
        owner="passes of CrossPipe",
        values={"input_gradient_s": INPUT_GRADIENT_S, "weight_gradient_s": WEIGHT_GRADIENT_S},
        rows="the row without delay",
        files=("crosspipe.json",),
        command="scenarios.reproduce crosspipe",
    )
    yield FittedConstants(
        owner="stall of CrossPipe's senders",
        values={"share_of_message": float(BLOCKING.endpoints == "blocking")},
        rows="5 rows of 2 data centres",
        files=("crosspipe.json",),
        command="scenarios.reproduce crosspipe",
    )
    links = shipped_link_figures()
    of_models = {"other GPUs": links.pooled, **links.models}
    linked = {name: asdict(own) for name, own in of_models.items()}
    linked |= {name: asdict(own) for name, own in links.networks.items()}
    for name, values in linked.items():
        yield FittedConstants(
            owner=f"links of {name}",
            values=values,
            rows="all-reduces of 1 MiB and more in Vidur's network profiles",
            command="calibration devices",
        )
    for name in engine_names():
        yield FittedConstants(
            owner=f"engine {name}",
            values=asdict(engine_named(name).times),
            rows="every second cell of the profile, of NVIDIA",
            command="calibration serving",
        )
    near_s = round_trip_s(0.0)
    yield FittedConstants(
        owner="round trips by distance",
        values={"least_s": near_s, "slope_s_per_km": (round_trip_s(1e3) - near_s) / 1e3},
        rows="380 pairs of AWS regions, Skyplane's latency.csv",
    )
    yield FittedConstants(
        owner="send buffers of Linux",
        values={"share_of_data": BUFFER_SHARE},
        rows="one run of 4 MB at a round trip of 80 ms",
        files=("real_runs",),
        command="scenarios.reproduce real_runs",
    )
    yield FittedConstants(
        owner="loss by tokens",
        values={"scale": DATA_SCALE, "exponent": DATA_EXPONENT},
        rows="runs of Hoffmann et al., arXiv 2203.15556, appendix D.3, by them",
    )


def reproduce_cases(cases: Path) -> Reproduction:
    """Return the table of fitted constants, whose rows lie in a folder.

    Raises
    ------
    UsageError
        If there is no such folder, or rows are missing in it.
    """
    found = tuple(fitted_constants())
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
            "command": f"python -m {one.command}" if one.command else "",
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
        figure=_figure(found),
    )


def _figure(found: tuple[FittedConstants, ...]) -> Figure:
    """Number of constants that each set of rows holds."""
    places = tuple(map(float, range(len(found))))
    counts = [len(one.values) for one in found]
    boxes = Boxes(
        label="constants",
        starts=(0.0,) * len(found),
        ends=tuple(map(float, counts)),
        rows=places,
        colour=BLUE,
    )
    ticks = tuple((place, one.owner) for place, one in zip(places, found, strict=True))
    panel = Panel(
        x=Axis(label="constants", low=0.0),
        y=Axis(ticks=ticks, low=-0.5, high=len(found) - 0.5, is_reversed=True),
        marks=(boxes,),
        height=0.7 + 0.34 * len(found),
        grid="x",
    )
    return Figure(
        name="constants",
        title="Constants that were fitted together",
        seen=f"{sum(counts)} constants from {len(found)} sets of rows.",
        panels=(panel,),
    )
