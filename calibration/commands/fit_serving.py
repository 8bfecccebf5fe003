"""Fit iteration times of inference engines to measured profiles; test them on half of the cells."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from calibration.commands.console import say, write_and_say
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from collections.abc import Sequence

    import numpy as np

    from calibration.measured import serving_fit, serving_profiles
    from calibration.measured.serving_profiles import EngineProfile

EXAMPLES = """\
examples:
  python -m calibration serving
      the shipped profiles
  python -m calibration serving --profiles my_profiles.json --out runs/my_engines

files written to --out:
  engines.json  times of each engine, fitted to all cells
  cells.csv     every decode cell: batch, context, measured gap, error of a fit without it
"""
_BATCHES = ((1, 1), (2, 16), (17, 128), (129, 10**9))
_PROMPTS = ((0, 999), (1_000, 4_999), (5_000, 10**9))
_CONTEXTS = ((0, 999), (1_000, 9_999), (10_000, 10**9))

_TARGETS = "targets 5 % and 15 % (3 % and 8 %)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the fit."""

    profiles: Path | None = option(None, "file of measured profiles", default_text="shipped")
    out: Path = option(Path("runs/serving"), "folder for the files")


def run(config: Config) -> None:
    """Fit, test and write."""
    profiles = serving_profiles.read_profiles(config.profiles or serving_profiles.SHIPPED)
    engines, cells = {}, ["profile,batch,context_tokens,gap_ms,error_fraction"]
    gaps: list[tuple[int, float, float]] = []
    prompts: list[tuple[float, float]] = []
    for name, profile in profiles.items():
        errors = serving_fit.held_out_errors(profile)
        say(f"{name}: gaps {_say(errors.gap_fraction)}, prompts {_say(errors.prefill_fraction)}")
        gaps += zip(errors.batch, errors.context, errors.gap_fraction, strict=True)
        prompts += zip(profile.prompt_tokens, errors.prefill_fraction, strict=True)
        engines[name] = _engine(profile)
        for batch, context, gap_ms, error in zip(
            errors.batch, errors.context, profile.gap_ms, errors.gap_fraction, strict=True
        ):
            cells.append(f"{name},{batch},{context:g},{gap_ms:g},{error:.6f}")
    say(f"all gaps: {_say([error for *_, error in gaps])}; {_TARGETS}")
    _say_bands("batch", [(batch, error) for batch, _, error in gaps], _BATCHES)
    _say_bands("context", [(context, error) for _, context, error in gaps], _CONTEXTS)
    say(f"all prompts: {_say([error for _, error in prompts])}; {_TARGETS}")
    _say_bands("tokens", prompts, _PROMPTS)
    say(f"gaps and prompts: {_say([error for *_, error in (*gaps, *prompts)])}")
    files = {
        "engines.json": (json.dumps(engines, indent=1) + "\n").encode(),
        "cells.csv": ("\n".join(cells) + "\n").encode(),
    }
    write_and_say(config.out, files, engines=engines)


def _say_bands(
    name: str, cells: Sequence[tuple[float, float]], bands: Sequence[tuple[int, int]]
) -> None:
    """Say the errors of cells (value, error) by bands of the value, ends included."""
    for low, high in bands:
        part = [error for value, error in cells if low <= value <= high]
        say(f"  {name} {low} to {high if high < 10**9 else 'largest'}: {_say(part)}")


def _say(errors: Sequence[float]) -> str:
    """Mean and 95th percentile of held-out errors, in words."""
    if not errors:
        return "no cells"
    sizes = np.abs(np.array(errors))
    return (
        f"mean {100 * sizes.mean():.1f} %, p95 {100 * np.percentile(sizes, 95):.1f} % "
        f"({len(sizes)} cells)"
    )


def _engine(profile: EngineProfile) -> dict[str, object]:
    fit, _ = serving_fit.fit_profile(profile)
    return {
        "gpu": profile.gpu,
        "model": profile.model,
        "num_gpus": profile.tensor_parallel,
        "kv_capacity_tokens": profile.max_kv_tokens,
        "times": dataclasses.asdict(fit.times),
    }
