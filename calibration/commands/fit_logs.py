"""Compare logged steps of training with the simulator, and fit factors that correct it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from calibration.commands.console import say
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, required
from des.base.lazy import lazy_imports
from des.worlds.reading import read_topology

with lazy_imports(__name__):
    from calibration.fit import corrections_file
    from calibration.measured import logged_runs, run_factors

EXAMPLES = """\
examples:
  python -m calibration runs run1.log run2.log --network now.yaml --out corrections.json
      then --corrections corrections.json of scenarios.simulate
  python -m calibration runs logs --network now.yaml --json
      all logs of a folder, as a document

Logs are those of Megatron-LM and torchtitan with what they print at the start. Ranks are laid over
the sites of the network in their order; consecutive ones form a stage of all replicas.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of a comparison."""

    logs: tuple[Path, ...] = required("logs of training runs, or folders", is_positional=True)
    network: str = required("world that they ran on", is_file=True)
    out: Path | None = option(None, "file of the correction factors; none: it is not written")


def run(config: Config) -> None:
    """Read, simulate, fit, say and write."""
    topology = read_topology(config.network)
    runs = logged_runs.read_logs(config.logs)
    fitted = run_factors.fit_runs(runs, topology)
    rows = [
        {
            "log": one.name,
            "measured_s": one.run.measured_iteration_s,
            "spread_s": one.reading.spread,
            "steps": one.reading.samples,
            "error": fitted.plain[at],
            "fitted_error": fitted.fitted[at],
            "held_out_error": fitted.held_out[at],
        }
        for at, one in enumerate(runs)
    ]
    for row in rows:
        say(_line(row))
    for name, factor in fitted.factors.items():
        width = fitted.half_widths[name]
        interval = (
            ""
            if math.isnan(width)
            else (
                f", 95 % interval {factor * math.exp(-width):.3f} to {factor * math.exp(width):.3f}"
            )
        )
        say(f"{name}: times x {factor:.3f}{interval}")
    left = [name for name in run_factors.FACTORS if name not in fitted.factors]
    if left:
        say(f"not fitted: {', '.join(left)}; these steps do not determine them")
    DOCUMENT.add(runs=rows, factors=fitted.factors, half_widths=fitted.half_widths, out=config.out)
    if config.out is not None:
        config.out.parent.mkdir(parents=True, exist_ok=True)
        corrections_file.write_corrections(fitted.corrections, config.out)
        say(f"written: {config.out}")


def _line(row: Mapping[str, object]) -> str:
    errors = [row[name] for name in ("error", "fitted_error", "held_out_error")]
    plain, fitted, held_out = (
        "-" if not isinstance(one, float) or math.isnan(one) else f"{100 * one:+.1f} %"
        for one in errors
    )
    spread = row["spread_s"]
    apart = f", quartiles {spread:.3g} s apart" if isinstance(spread, float) else ""
    return (
        f"{row['log']}: {row['measured_s']:.4g} s a step of {row['steps']}{apart}; predicted "
        f"{plain}, corrected {fitted}, by the other logs {held_out}"
    )
