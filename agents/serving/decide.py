"""Propose the sizes of the pools of an inference fleet, once, as JSON.

The view is a JSON object: what each pool has and does now, and what came in the last interval.
"""

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.serving.table import scaling_policy
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, required
from des.base.text_files import read_json
from des.serving.engines import engine_named
from des.serving.fleet_settings import ScalingLimits, Slo, StartDelay
from des.serving.fleet_world import LAYOUTS_OF_POOLS, Decision, PoolView, View, World
from des.serving.requests import Request

PROG = "python -m agents.serving.decide"
_POOL_FIELDS = tuple(field.name for field in dataclasses.fields(PoolView))
_COUNTS = ("arrivals", "prompt_tokens", "finished", "output_tokens")
_METRICS = ("ttft_s", "ttft_p95_s", "gap_s", "attainment")
_MOST = 1e15
"""Greatest number of a view; products of several stay far from the end of floats."""

_EXAMPLES = f"""\
examples:
  {PROG} --view view.json --policy sla --slo-ttft 0.5 --slo-tbt 0.1
  {PROG} --view view.json --policy hpa --max-total-instances 20

view.json: {{"now_s": 60, "interval_s": 10, "arrivals": 80, "prompt_tokens": 96000, "finished": 70,
 "output_tokens": 14000, "ttft_s": 0.4, "ttft_p95_s": 0.9, "gap_s": 0.03, "attainment": 0.97,
 "pools": {{"prompt": {{{", ".join(f'"{name}": 0' for name in _POOL_FIELDS)}}},
           "token": {{...}}}}}}
 (or one pool, mixed); metrics may be null

exit codes: 0 proposed; 2 bad input; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the command."""

    view: Path = required("JSON file of the view", is_file=True)
    policy: str = option("sla", "policy that proposes")
    checkpoint: Path | None = option(None, "trained policy, for rl", is_file=True)
    engine: str = option("h100-llama-3.3-70b-fp8-tp8", "engine with fitted times")
    slo_ttft: float = option(0.5, "longest time to the first token [s]")
    slo_tbt: float = option(0.1, "longest gap between tokens [s]")
    load: float = option(30.0, "time of a start [s]")
    max_total_instances: int = option(100, "most instances in all")


@command(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config) -> None:
    """Run the command on its settings."""
    view = view_of(read_json(config.view), config)
    decision = pool_proposal(view, config)
    answer = {"counts": dict(decision.counts), "migrate": decision.migrate, "why": decision.why}
    DOCUMENT.add(**answer)
    sys.stdout.write(json.dumps(answer) + "\n")


def pool_proposal(view: View, config: Config) -> Decision:
    """Proposal of the policy for a view, by a memory of nothing else."""
    policy = scaling_policy(config.policy, config.checkpoint)
    decision, _ = policy.decide(view, policy.first_memory(_world(view, config)))
    return decision


def view_of(form: object, config: Config) -> View:
    """Make a view of a JSON object.

    Raises
    ------
    ValueError
        If a field is missing, is no number or is negative, naming it.
    """
    values = _object(form, "view", ("now_s", "interval_s", "pools", *_COUNTS, *_METRICS))
    pools = _object(values["pools"], "pools", ())
    names = tuple(pools)
    if names not in LAYOUTS_OF_POOLS:
        raise UsageError(f"view: pools must be prompt and token, or mixed, got {list(names)}")
    interval_s = _number(values, "view", "interval_s")
    if interval_s == 0:
        raise ValueError("view: interval_s must be positive, got 0")
    metrics: dict[str, Any] = {
        name: None if values[name] is None else _number(values, "view", name) for name in _METRICS
    }
    counts: dict[str, Any] = {name: int(_number(values, "view", name)) for name in _COUNTS}
    return View(
        now_s=_number(values, "view", "now_s"),
        interval_s=interval_s,
        pools={name: _pool(pools[name], name) for name in names},
        **counts,
        **metrics,
        slo=Slo(ttft_s=config.slo_ttft, gap_s=config.slo_tbt),
        engine=engine_named(config.engine),
        limits=ScalingLimits(max_total=config.max_total_instances),
    )


def _pool(form: object, name: str) -> PoolView:
    values = _object(form, f"pool {name}", _POOL_FIELDS)
    whole = _POOL_FIELDS[:6]
    numbers: dict[str, Any] = {}
    for field in _POOL_FIELDS:
        number = _number(values, f"pool {name}", field)
        numbers[field] = int(number) if field in whole else number
    return PoolView(**numbers)


def _object(form: object, owner: str, needed: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(form, dict):
        raise UsageError(f"{owner}: must be an object, got {form!r}")
    missing = [name for name in needed if name not in form]
    if missing:
        raise UsageError(f"{owner}: {', '.join(missing)} must be given, got none")
    return form


def _number(values: Mapping[str, Any], owner: str, name: str) -> float:
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise ValueError(
            f"{owner}: {name} must be a finite number of at least 0 and at most {_MOST:g}, "
            f"got {value!r}"
        )
    return float(value)


def _world(view: View, config: Config) -> World:
    """Make the world that first memories are made of: the pools of the view, and no trace."""
    none = Request(request_id=0, arrival_s=0.0, prompt_tokens=1, output_tokens=1)
    return World(
        requests=(none,),
        engine=view.engine,
        initial={name: max(pool.ordered, 1) for name, pool in view.pools.items()},
        slo=view.slo,
        start=StartDelay(load_s=config.load),
        limits=view.limits,
        decision_interval_s=view.interval_s,
    )


if __name__ == "__main__":
    raise SystemExit(main())
