"""Make a world of what was measured, or bring one up to date, and say what stays assumed.

Files are recognised by their content. A latency is half of a round trip; several measurements of
one link give their median.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rich import box
from rich.table import Table

from calibration.measurements.formats import FORMATS, read_measurements
from calibration.measurements.sites import Sites, read_sites
from des.base.atomic_write import write_atomically
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.console import FittedConsole
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, required
from des.base.lazy import lazy_imports
from des.dynamics import STEADY
from scenarios.measuring.changes import Change, MeasuredWorld, apply_measurements

with lazy_imports(__name__):
    from calibration.measurements.reading import Reading
    from des import Topology
    from des.figures import paper
    from des.world.files import topology_writer
    from des.worlds import reading as world_reading
    from scenarios.measuring import course_picture, courses, measured_world

PROG = "python -m scenarios.measuring"
_EPILOG = f"""\
formats:
{"".join(f"  {one.name:24} {one.made_by}{chr(10)}" for one in FORMATS)}
examples:
  {PROG} measured/*.json --sites sites.yaml --network world.yaml --out now.yaml
      the world as it is now; then eastwest decide --network now.yaml
  {PROG} measured --sites sites.yaml --site-gpus Frankfurt=16*h100,Paris=8*h100 --out now.yaml
      a world of a folder of measurements alone
  {PROG} prometheus.json --network world.yaml --law fitted --out now.yaml
      with a law of how links wander, and a picture of how well it fits

sites.yaml maps sites to host names, addresses and subnets: Frankfurt: ["10.1.0.0/16", "fra-*"]

exit codes: 0 done; 2 bad input;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of measurements."""

    files: tuple[Path, ...] = required("files of measurements, or folders", is_positional=True)
    network: str | None = option(
        None, "world to bring up to date; none: one of what was measured", is_file=True
    )
    sites: Path | None = option(
        None, "YAML file of sites; none: hosts are called as sites are", is_file=True
    )
    site_gpus: tuple[str, ...] = option(
        (), "without --network: GPUs of sites, such as Paris=8*h100"
    )
    law: Literal["keep", "replay", "fitted"] = option(
        "keep", "course of links: as before, the series again, or a law fitted to it"
    )
    out: Path | None = option(None, "file of the world; none: it is not written")


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    if config.network is not None and config.site_gpus:
        raise UsageError(
            f"{PROG}: site_gpus must be left out with network, got {config.site_gpus[0]}"
        )
    if config.out is not None and config.out.suffix.lower() not in (".yaml", ".yml"):
        raise UsageError(f"{PROG}: out must end in .yaml or .yml, got {config.out}")
    topology = None if config.network is None else world_reading.read_topology(config.network)
    readings = read_measurements(config.files, _sites(config, topology))
    if topology is None:
        topology = measured_world.measured_world(readings, _gpus(config.site_gpus))
    measured = apply_measurements(topology, readings)
    written: list[Path] = []
    law_lines = _write(config, measured, readings, written)
    console = FittedConsole()
    console.print(file_table(readings, measured))
    if measured.changes:
        console.print(change_table(measured.changes, is_new=config.network is None))
    lines = [*_unused_lines(measured), f"assumed, not measured: {'; '.join(measured.assumed)}"]
    for line in (*lines, *law_lines, *(f"written: {path}" for path in written)):
        console.print(line)
    DOCUMENT.add(
        changes=[_row(one) for one in measured.changes],
        unused=[{"file": one.file, "what": one.what, "why": why} for one, why in measured.unused],
        assumed=measured.assumed,
        law=law_lines,
        written=written,
    )


def _sites(config: Config, topology: Topology | None) -> Sites:
    """Sites of the file, or those of the world by their names, or hosts as they are."""
    if config.sites is not None:
        return read_sites(config.sites)
    names = () if topology is None else dict.fromkeys(one.site_name for one in topology.domains)
    return Sites(patterns=dict.fromkeys(names, ()))


def _gpus(entries: Sequence[str]) -> Mapping[str, tuple[int, str]]:
    found = {}
    for entry in entries:
        site, equals, rest = entry.partition("=")
        count, star, kind = rest.partition("*")
        if not (equals and star and count.isdecimal()):
            raise UsageError(
                f"{PROG}: site_gpus must be SITE=COUNT*KIND with commas, got {entry!r}"
            )
        found[site] = int(count), kind
    return found


def file_table(readings: Sequence[Reading], measured: MeasuredWorld) -> Table:
    """Table of the files, what each is, and what it sets."""
    sets: dict[str, dict[str, None]] = {one.file: {} for one in readings}
    for change in measured.changes:
        for one in change.after.readings:
            sets[one.file] |= {_figure_of(change): None}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("file", "is", "sets"):
        table.add_column(heading, overflow="fold")
    for file, form in dict.fromkeys((one.file, one.format) for one in readings):
        table.add_row(Path(file).name, form, ", ".join(sets[file]) or "nothing")
    return table


def change_table(changes: Sequence[Change], *, is_new: bool) -> Table:
    """Table of what measurements set; a world of measurements alone has no figures before."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("figure", "before", "after", "spread", "samples"):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    for one in changes:
        table.add_row(
            f"{_figure_of(one)} [{unit_of(one.field)[0]}]",
            "" if is_new else figure_text(one.field, one.before),
            figure_text(one.field, one.after.value),
            figure_text(one.field, one.after.spread),
            f"{one.after.samples}",
        )
    return table


def _figure_of(change: Change) -> str:
    return f"{re.sub('^(link|domain|site) ', '', change.owner)} {change.field}"


def figure_text(field: str, value: float | None) -> str:
    """Show a figure in the unit of `unit_of`; a dash where there is none."""
    return "-" if value is None else f"{value * unit_of(field)[1]:.4g}"


def unit_of(field: str) -> tuple[str, float]:
    """Unit that people use for a figure, and how many there are in one of SI.

    Examples
    --------
    >>> unit_of("nic_bandwidth"), unit_of("intra_latency"), unit_of("loss_fraction")
    (('Gbit/s', 8e-09), ('ms', 1000.0), ('%', 100.0))
    """
    if field.endswith(("bandwidth", "link")):
        return "Gbit/s", 8e-9
    return ("ms", 1e3) if field.endswith("latency") else ("%", 1e2)


def _row(change: Change) -> dict[str, object]:
    return {
        "owner": change.owner,
        "field": change.field,
        "before": change.before,
        "after": change.after.value,
        "spread": change.after.spread,
        "samples": change.after.samples,
        "files": [one.file for one in change.after.readings],
    }


def _unused_lines(measured: MeasuredWorld) -> list[str]:
    """A line a reason, with the files that it is of."""
    files: dict[tuple[str, str], list[str]] = {}
    for one, why in measured.unused:
        files.setdefault((one.what, why), []).append(Path(one.file).name)
    return [
        f"not used: {what} of {', '.join(dict.fromkeys(names))}: {why}"
        for (what, why), names in files.items()
    ]


def _write(
    config: Config, measured: MeasuredWorld, readings: Sequence[Reading], written: list[Path]
) -> list[str]:
    """Write the world, its trace and its picture; return what is to say of the law."""
    topology, out = measured.topology, config.out
    comment = f"measured: {', '.join(dict.fromkeys(Path(one.file).name for one in readings))}"
    lines: list[str] = []
    trace: Path | None = None
    if config.law == "replay":
        series = courses.replayed(readings, topology)
        topology = replace(topology, dynamics=STEADY)
        lines = [f"replay: {len(series)} links at {len(series[0].times_s)} times"]
        if out is not None:
            trace = out.with_name(f"{out.stem}_course.csv")
            out.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(trace, courses.trace_csv(series))
            written.append(trace)
    elif config.law == "fitted":
        fitted = courses.fit_course(readings, topology)
        topology = replace(topology, dynamics=fitted.law)
        lines = [fitted.line()]
        if out is not None:
            picture = out.with_name(f"{out.stem}_course.png")
            out.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(picture, paper.image_bytes(course_picture.course_figure(fitted)))
            written.append(picture)
    if out is not None:
        topology_writer.write_topology(
            out,
            topology,
            comment=comment,
            makes_folder=True,
            trace=None if trace is None else trace.name,
        )
        written.append(out)
    return lines
