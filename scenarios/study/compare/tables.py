"""Tables of a comparison on the console."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table


def method_table(title: str, *columns: str, first: str = "method") -> Table:
    """Start a table with names of lines in its first column and figures in the rest."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def saved_table(saved: pd.DataFrame) -> Table:
    """Shares of communication saved: methods by suite in lines, groups of tokens in columns."""
    groups = sorted(saved["least_tokens"].unique())
    names = [f"from {least / 1e6:g} M" for least in groups]
    title = "communication against data parallelism, median by tokens a step [%]"
    table = method_table(title, *names)
    for (suite, method), lines in saved.groupby(["suite", "method"], sort=False):
        by_group = lines.set_index("least_tokens")["saved"]
        cells = [
            f"{-100.0 * by_group[least]:+.0f}" if least in by_group.index else "-"
            for least in groups
        ]
        table.add_row(f"{method}, {suite}", *cells)
    return table


def as_percent(value: object, half_width: object = None) -> str:
    """Write a fraction as a percentage, with half an interval where there is one."""
    if not isinstance(value, int | float) or not np.isfinite(value):
        return "-"
    known = isinstance(half_width, int | float) and np.isfinite(half_width)
    spread = f" ± {100 * float(half_width):.2f}" if known else ""  # type: ignore[arg-type]
    return f"{100 * value:.2f}{spread}"


def against(row: Mapping[object, object], name: str) -> str:
    """Write a relative difference, with a star where it is more than chance."""
    value, p_value = row[name], row[f"{name}_p"]
    if not isinstance(value, float) or not isinstance(p_value, float) or np.isnan(value):
        return "-"
    return f"{100 * value:+.2f} %{'*' if p_value < 0.05 else ' '}"


def as_time(seconds: float) -> str:
    """Write a time in seconds or milliseconds."""
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


def tightness_table(tightness: pd.DataFrame) -> Table:
    """Table of the best plans over the bound: median, and in brackets of how many worlds."""
    regimes = list(dict.fromkeys(tightness["binds"]))
    title = "best plan over the proven bound, median [%], by what binds (worlds)"
    table = method_table(title, *regimes, first="best plans")
    for (suite, plans), lines in tightness.groupby(["suite", "plans"], sort=False):
        by_regime = {line["binds"]: line for line in lines.to_dict("records")}
        cells = [
            f"{as_percent(by_regime[one]['over_bound'])} ({by_regime[one]['num_worlds']})"
            if one in by_regime
            else "-"
            for one in regimes
        ]
        table.add_row(f"{plans}, {suite}", *cells)
    return table
