"""Compare the simulator with published and measured figures: one command a table."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from des.base.command import EXIT_CODES, exit_code_of
from des.base.flags import option, parse, parse_command
from des.base.lazy import lazy_imports
from scenarios.frame.outputs import OutputFlags, repetition_of, require_no_run
from scenarios.reproduce import serving
from scenarios.reproduce.cases import PUBLISHED

with lazy_imports(__name__):
    from scenarios.reproduce import report

PROG = "python -m scenarios.reproduce"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """Figures that a module of this room reproduces: its ``reproduce_cases`` takes the cases.

    Attributes
    ----------
    about
        What is compared, and by whom it was published.
    cases, kind
        Cases that come with EastWest, and what ``--cases`` takes.
    notes
        What else its help says.
    flags
        Further settings by name.
    """

    about: str
    cases: Path | tuple[Path, ...]
    kind: str
    notes: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)


TABLES: dict[str, PublishedTable] = {
    "zero_bubble": PublishedTable(
        about="bubble rates of pipeline schedules (Zero Bubble)",
        cases=PUBLISHED / "zero_bubble.json",
        kind="file of published rows",
        notes="""\
A row of a model that is not in the paper has to give chunks_per_device where it has a figure for
interleaved_1f1b, and weight_input_fraction where it has one for zb_2p. A figure that is null was
not published.""",
    ),
    "crosspipe": PublishedTable(
        about="seconds per microbatch across data centres (CrossPipe)",
        cases=PUBLISHED / "crosspipe.json",
        kind="file of published rows",
        notes="""\
The exact schedules get a little work each, the same in every run; 300 s each, about an hour and
a half for five rows, with --exact-work inf --exact-seconds 300.
A figure that is null was not published. A bound is judged over the figures that there are.""",
        flags={
            "exact_work": option(
                1.0,
                "limit of an exact search in its deterministic time, a unit is 3 to 10 s; or inf",
            ),
            "exact_seconds": option(300.0, "limit in seconds; a search it ends can vary"),
        },
    ),
    "diloco": PublishedTable(
        about="bandwidth that synchronisation needs, per mode (Streaming DiLoCo)",
        cases=(PUBLISHED / "diloco.json", PUBLISHED / "diloco_scaling.json"),
        kind="files of published rows",
        notes="A figure that is null was not published.",
    ),
    "sailor": PublishedTable(
        about="iteration times of measured runs, from profiles alone (Sailor)",
        cases=PUBLISHED / "sailor",
        kind="folder of runs and profiles",
        notes="""\
files read from --cases: real_runs.csv (rows whose usable is 1), real_runs_stages.csv,
  layer_memory.csv, network_profiles.csv
  est_NAME_s of real_runs.csv is the estimate of a published simulator; blank, n/a or nan: none
  ar_c2, ar_c1, ar_c0 may be blank where dp is 1, p2p_c2, p2p_c1, p2p_c0 for the last stage
bound on the mean absolute error of each cluster: that of the best published simulator with an
  estimate of every run; without one, the cluster is not judged""",
    ),
    "measured": PublishedTable(
        about="times and memory of measured runs, from shapes of layers (vTrain, Korthikanti et "
        "al.)",
        cases=PUBLISHED / "measured",
        kind="folder of tables of measured runs",
        notes="""\
Names of files begin with vtrain_multi, vtrain_single, mtnlg, korthikanti, zb_throughput,
torchtitan or intellect1; a file without setup takes that of the shipped file of the same table.""",
    ),
    "megatron_bridge": PublishedTable(
        about="tokens per second of Megatron-Bridge on H100 to GB300 in BF16 to NVFP4",
        cases=PUBLISHED / "megatron_bridge",
        kind="folder of measured rows",
        notes="Files are CSV with the columns of the shipped rows.csv.",
    ),
    "real_runs": PublishedTable(
        about="steps of real PyTorch pipelines over emulated WAN links, by runtime and hosts",
        cases=PUBLISHED / "real_runs",
        kind="folder of measured pipelines",
        notes="Files are pipelines*.json of the form of the shipped one.",
    ),
    "sites": PublishedTable(
        about="training runs over several real sites, with ranges of what their sources leave out",
        cases=PUBLISHED / "sites.json",
        kind="file of measured runs",
        notes="A figure that is a pair is assumed to lie between both, for a reason in assumed.",
    ),
    "decoupled": PublishedTable(
        about="goodput with failing chips, with and without decoupling (Decoupled DiLoCo)",
        cases=PUBLISHED / "decoupled.json",
        kind="file of measured goodputs",
        notes="A figure that is a pair is assumed to lie between both, for a reason in assumed.",
    ),
    "rivals": PublishedTable(
        about="plans of published programs (Sailor, DT-FM, CrossPipe) against ours of their names",
        cases=PUBLISHED / "rivals",
        kind="folder of worlds, jobs with original plans, and pipelines",
        notes="Files are world_NN.yaml with world_NN.json, and crosspipe_pipelines.json.",
    ),
    "constants": PublishedTable(
        about="fitted constants, each with its value and the rows that it was fitted on",
        cases=PUBLISHED,
        kind="folder of the rows",
    ),
    "spot": PublishedTable(
        about="rules on sites that come and go against a clairvoyant, on the public spot traces",
        cases=PUBLISHED / "spot.json",
        kind="file of sites with the step time of each set of them",
        notes="""\
Without --traces the courses are of synthetic laws. The traces have no licence: clone
github.com/skypilot-org/spot-traces yourself. About five minutes; --draws 12 searches five more.""",
        flags={
            "traces": option("", "clone of the public traces", default_text="synthetic laws"),
            "draws": option(0, "sites to draw, with searched step times, in place of --cases"),
            "partial": option(False, "rules see only what they hold or ask for"),
            "readable": option(False, "judge in the engine to read: the same table, slowly"),
        },
    ),
    "blox": PublishedTable(
        about="job times and rounds of a queue of jobs (Blox)",
        cases=PUBLISHED / "blox",
        kind="folder of cases",
        notes="Files are *.json, a case each.",
    ),
}

COMMANDS = {name: table.about for name, table in TABLES.items()} | {
    "serving": "clusters, autoscalers and traces of inference (splitwise-sim, Vidur, DistServe, "
    "HPA, ...)"
}
"""Subjects of all commands, by name."""

_EPILOG = f"""\
--cases is a file of published figures; for sailor it is a folder of CSV files,
for measured, real_runs and blox one of JSON files, for megatron_bridge one of CSV files, for rivals
one of worlds, for serving one of cases.
Each but serving writes table.csv, table.md, report.html and picture.png to --out.

examples:
  {PROG} zero_bubble
  {PROG} sailor --out sailor

exit codes: 0 every bound that applies is met; 1 one is not; 2 bad input;
  {EXIT_CODES}
"""
_TABLE_EPILOG = f"""\
examples:
  {{prog}}
  {{prog}} --cases my_cases --out runs/my_cases

{{notes}}

files written to --out: table.csv, table.md, report.html, picture.png

exit codes: 0 every bound that applies is met; 1 one is not; 2 bad input;
  {EXIT_CODES}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    name, arguments = parse_command(
        COMMANDS, argv, prog=PROG, description=__doc__ or "", epilog=_EPILOG
    )
    if name == "serving":
        return serving.main(arguments)
    table, prog = TABLES[name], f"{PROG} {name}"
    config = parse(
        _config_class(name, table),
        arguments,
        prog=prog,
        description=_docstring(name),
        epilog=_TABLE_EPILOG.format(prog=prog, notes=table.notes),
    )
    require_no_run(config.out)
    choice, repeat = config.choice(), repetition_of(prog, config)
    flags = {name: getattr(config, name) for name in table.flags}
    module = import_module(f"{__package__}.{name}")
    return report.publish(module.reproduce_cases(config.cases, **flags), config.out, repeat, choice)


def _config_class(name: str, table: PublishedTable) -> Any:
    """Settings of a table as flags."""
    cases = tuple[Path, ...] if isinstance(table.cases, tuple) else Path
    return make_dataclass(
        "Config",
        [
            ("cases", cases, option(table.cases, table.kind)),
            ("out", Path, option(Path(f"runs/reproduce/{name}"), "folder for table and picture")),
            *((each, type(value.default), value) for each, value in table.flags.items()),
        ],
        bases=(OutputFlags,),
        frozen=True,
        kw_only=True,
    )


def _docstring(name: str) -> str:
    """Docstring of a module of this room, whose imports would take longer than its help."""
    source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""
