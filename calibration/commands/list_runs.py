"""List the runs of a store, oldest first, or write all of them to a CSV or Parquet file."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from calibration.commands.console import console, console_table, say
from calibration.commands.ending import UsageError
from calibration.commands.flags import DEFAULT_STORE, add_flag, count
from calibration.runs.store import Store

EXAMPLES = """\
examples:
  python -m calibration list --newest 20
  python -m calibration list --out runs.csv
"""

KEY_DIGITS = 16
"""First digits of a key, by which people know a run."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add_flag(parser, "--store", Path, DEFAULT_STORE, "file of runs")
    add_flag(parser, "--newest", count, None, "only so many of the newest runs")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all runs to .csv, .parquet")


def run(arguments: argparse.Namespace) -> int:
    """Print the runs."""
    store = Store.open(arguments.store, must_exist=True)
    if arguments.out is not None:
        if arguments.newest is not None:
            raise UsageError("--newest must be left out with --out, which writes all runs")
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        store.export(arguments.out)
        say(f"written: {arguments.out}")
        return 0
    rows = store.rows()
    shown = rows if arguments.newest is None else rows.tail(arguments.newest)
    table = console_table(
        f"{len(shown)} of {len(rows)} runs in {arguments.store}",
        ("key", "when (UTC)", "backend", "reduced by", "model", "schedule", "placement"),
        "iteration time s",
    )
    for row in shown.to_dict("records"):
        when = datetime.fromtimestamp(row["created_s"], tz=UTC)
        names = (row.get(name) for name in ("aggregation", "model", "schedule", "placement"))
        table.add_row(
            row["key"][:KEY_DIGITS],
            f"{when:%Y-%m-%d %H:%M:%S}",
            row["backend"],
            *(name if isinstance(name, str) else "" for name in names),
            f"{row['makespan_s']:.6f}",
        )
    console().print(table)
    return 0
