"""Most load that a fixed fleet bears within the SLO, by bisection over the stretch of a trace."""

import sys
from dataclasses import replace

from des.base.checks import require_count, require_fraction
from des.base.document import DOCUMENT
from des.compiled.fleet import simulate_fixed_pool
from des.serving.request_streams import stretched
from des.serving.requests import Request
from scenarios.autoscale.fleet_config import FleetConfig, config_requests, config_world

_NUM_BISECTIONS = 8
_WIDEST = 64.0
"""Largest factor of the load that is tried, and its inverse the smallest."""


def run_capacity(config: FleetConfig, attainment: float, sizes: tuple[int, ...]) -> int:
    """Print a row for each size of a mixed pool: most load, its cost, USD per million tokens."""
    require_fraction("--attainment", "value", attainment)
    requests = config_requests(config)
    mean_per_s = len(requests) / max(requests[-1].arrival_s, 1e-9)
    sys.stdout.write("instances  requests/s  attainment  USD/h  USD per million output tokens\n")
    rows: list[dict[str, object]] = []
    for num in sizes:
        require_count("--instances", "value", num)
        sized = replace(config, mixed=num)
        factor, reached = _most_load(sized, requests, attainment)
        if reached is None:
            rows.append({"instances": num, "requests_per_s": None})
            sys.stdout.write(f"{num:9}  none of the loads tried is within the SLO\n")
            continue
        usd_h = num * config_world(sized, requests).engine.num_gpus * config.usd_per_gpu_h
        tokens_per_s = factor * sum(one.output_tokens for one in requests) / requests[-1].arrival_s
        usd_per_million = usd_h / 3600.0 / tokens_per_s * 1e6
        rows.append(
            {
                "instances": num,
                "requests_per_s": factor * mean_per_s,
                "attainment": reached,
                "usd_per_h": usd_h,
                "usd_per_million_output_tokens": usd_per_million,
            }
        )
        sys.stdout.write(
            f"{num:9}  {factor * mean_per_s:10.2f}  {reached:10.4f}  {usd_h:5.1f}  "
            f"{usd_per_million:.2f}\n"
        )
    DOCUMENT.add(rows=rows)
    return 0


def _most_load(
    config: FleetConfig, requests: tuple[Request, ...], attainment: float
) -> tuple[float, float | None]:
    """Largest factor of the load within the SLO to 3 %, and the attainment there."""
    low, high, found = 1.0 / _WIDEST, _WIDEST, None
    for _ in range(_NUM_BISECTIONS):
        middle = (low * high) ** 0.5
        reached = _attainment(config, stretched(requests, 1.0 / middle))
        if reached >= attainment:
            low, found = middle, reached
        else:
            high = middle
    return low, found


def _attainment(config: FleetConfig, requests: tuple[Request, ...]) -> float:
    world = config_world(config, requests)
    return simulate_fixed_pool(world).attainment(world.slo)
