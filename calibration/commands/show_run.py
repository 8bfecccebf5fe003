"""Show all that a store holds of one run."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.commands.console import say
from calibration.commands.flags import DEFAULT_STORE
from calibration.runs.store import Store
from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, required

EXAMPLES = """\
examples:
  python -m calibration show 3f2a
      the run whose key begins like that, as `python -m calibration list` shows them
  python -m calibration show 3f2a --store runs/other.sqlite
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of a shown run."""

    key: str = required("key of a run, or its first digits", is_positional=True)
    store: Path = option(DEFAULT_STORE, "file of runs")


def run(config: Config) -> None:
    """Print the run as JSON."""
    rows = Store.open(config.store, must_exist=True).rows()
    found = rows[rows["key"].str.startswith(config.key)]
    if len(found) != 1:
        raise UsageError(
            f"key must be the beginning of the key of one run in {config.store}, "
            f"got {config.key!r}, which is that of {len(found)} of {len(rows)}"
        )
    figures = {
        str(name): value.item() if isinstance(value, np.generic) else value
        for name, value in found.dropna(axis="columns", how="all").iloc[0].items()
    }
    DOCUMENT.add(**figures)
    say(json.dumps(figures, indent=2))
