"""Requests per CPU second of both engines, on 40 instances at 200 requests a second."""

import sys
import time
from collections.abc import Callable

from agents.serving.table import scaling_policy
from des.compiled.fleet import simulate_fixed_pool
from des.serving.fleet_engine import run
from des.serving.request_streams import poisson_requests
from scenarios.autoscale.fleet_config import FleetConfig, config_world

_NUM_INSTANCES, _RATE_PER_S, _DURATION_S = 40, 200.0, 300.0
_NUM_FIRST = 500
"""Requests of a run before, in which the code is compiled."""


def run_speed() -> int:
    """Print a line for each engine."""
    config = FleetConfig(mixed=_NUM_INSTANCES, decision_interval=_DURATION_S)
    requests = poisson_requests(_RATE_PER_S, _DURATION_S, config.seed)
    simulate_fixed_pool(config_world(config, requests[:_NUM_FIRST]))
    world = config_world(config, requests)
    for name, action in (
        ("compiled", lambda: simulate_fixed_pool(world)),
        ("SimPy", lambda: run(world, scaling_policy("static"))),
    ):
        rate = len(requests) / _cpu_s(action)
        sys.stdout.write(f"{name}: {rate:.0f} requests per CPU second\n")
    return 0


def _cpu_s(action: Callable[[], object]) -> float:
    start_s = time.process_time()
    action()
    return time.process_time() - start_s
