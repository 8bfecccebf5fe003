"""List the runs of a store, oldest first, or write all of them to a CSV or Parquet file."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from calibration.commands.console import console, console_table, say
from calibration.commands.flags import DEFAULT_STORE
from calibration.runs.store import Store
from des.base.checks import require_count
from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option

EXAMPLES = """\
examples:
  python -m calibration list --newest 20
  python -m calibration list --out runs.csv
"""

KEY_DIGITS = 16
"""First digits of a key, by which people know a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of a list of runs."""

    store: Path = option(DEFAULT_STORE, "file of runs")
    newest: int | None = option(
        None, "show the N newest runs", check=require_count, default_text="all"
    )
    out: Path | None = option(None, "file for all runs, .csv or .parquet")


def run(config: Config) -> None:
    """Print the runs."""
    store = Store.open(config.store, must_exist=True)
    if config.out is not None:
        if config.newest is not None:
            raise UsageError("--newest must be left out with --out, which writes all runs")
        config.out.parent.mkdir(parents=True, exist_ok=True)
        store.export(config.out)
        DOCUMENT.add(out=config.out)
        say(f"written: {config.out}")
        return
    rows = store.rows()
    shown = rows if config.newest is None else rows.tail(config.newest)
    DOCUMENT.add(runs=shown)
    table = console_table(
        f"{len(shown)} of {len(rows)} runs in {config.store}",
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
