"""Requests per CPU second of both engines, on 40 instances at 200 requests a second."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace

from agents.serving.table import scaling_policy
from des.base.document import DOCUMENT
from des.compiled.fleet import run_compiled, simulate_fixed
from des.serving import fleet_engine
from des.serving.request_streams import poisson_requests
from scenarios.autoscale.command_configs import SpeedConfig
from scenarios.autoscale.fleet_config import FleetConfig, config_world

_NUM_INSTANCES, _RATE_PER_S, _DURATION_S = 40, 200.0, 300.0
_NUM_FIRST = 500
"""Requests of a run before, in which the code is compiled."""


def run(config: SpeedConfig) -> None:
    """Print a line for each engine and fleet."""
    del config
    fixed = FleetConfig(mixed=_NUM_INSTANCES, decision_interval=_DURATION_S)
    scaled = FleetConfig(prompt=_NUM_INSTANCES // 2, token=_NUM_INSTANCES // 2)
    requests = poisson_requests(_RATE_PER_S, _DURATION_S, fixed.seed)
    world, pools = config_world(fixed, requests), config_world(scaled, requests)
    run_compiled(replace(pools, requests=requests[:_NUM_FIRST]), scaling_policy("predictive"))
    rates = {}
    for name, action in (
        ("compiled, one pool as it is", lambda: simulate_fixed(world)),
        ("compiled, two pools as they are", lambda: simulate_fixed(pools)),
        (
            "compiled, two pools scaled every 10 s",
            lambda: run_compiled(pools, scaling_policy("predictive")),
        ),
        ("SimPy, one pool as it is", lambda: fleet_engine.run(world, scaling_policy("static"))),
        (
            "SimPy, two pools scaled every 10 s",
            lambda: fleet_engine.run(pools, scaling_policy("predictive")),
        ),
    ):
        rates[name] = len(requests) / _cpu_s(action)
        sys.stdout.write(f"{name}: {rates[name]:.0f} requests per CPU second\n")
    DOCUMENT.add(requests_per_cpu_s=rates)


def _cpu_s(action: Callable[[], object]) -> float:
    start_s = time.process_time()
    action()
    return time.process_time() - start_s
