"""Show all that a store holds of one run."""

import argparse
import json
from pathlib import Path

import numpy as np

from calibration.commands.console import say
from calibration.commands.ending import UsageError
from calibration.commands.flags import DEFAULT_STORE, add_flag
from calibration.runs.store import Store

EXAMPLES = """\
example:
  python -m calibration show 3f2a
      the run whose key begins like that, as `python -m calibration list` shows them
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    parser.add_argument("key", metavar="KEY", help="key of a run, or its first digits")
    add_flag(parser, "--store", Path, DEFAULT_STORE, "file of runs")


def run(arguments: argparse.Namespace) -> int:
    """Print the run as JSON."""
    rows = Store.open(arguments.store, must_exist=True).rows()
    found = rows[rows["key"].str.startswith(arguments.key)]
    if len(found) != 1:
        raise UsageError(
            f"key must be the beginning of the key of one run in {arguments.store}, "
            f"got {arguments.key!r}, which is that of {len(found)} of {len(rows)}"
        )
    figures = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in found.dropna(axis="columns", how="all").iloc[0].items()
    }
    say(json.dumps(figures, indent=2))
    return 0
