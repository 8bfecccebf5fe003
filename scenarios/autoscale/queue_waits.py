"""Waits of an instance that serves one request at a time, against M/M/1 and M/D/1."""

import sys

import numpy as np
import numpy.typing as npt
import pandas as pd

from des.base.checks import require_count
from des.base.document import DOCUMENT
from des.compiled.fleet import simulate_fixed
from des.serving.batch_times import BatchTimes
from des.serving.fleet_settings import Engine, ScalingLimits, Slo
from des.serving.fleet_world import MIXED, World
from des.serving.requests import Request
from scenarios.autoscale.command_configs import PROG, QueuesConfig
from scenarios.frame.outputs import repeated_settings, result_file, write_files
from scenarios.frame.rows_report import groups_report
from scenarios.frame.statistics import mean_and_interval

LOADS = (0.3, 0.6, 0.9)
_TOKENS = 1000
"""Mean prompt; a token takes 1 ms, so a service takes a second on average."""
_TOKEN_S = 1e-3
_ENGINE = Engine(
    times=BatchTimes(
        base_s=1e-12,
        per_prompt_token_s=_TOKEN_S,
        per_prompt_context_s=0.0,
        per_request_s=0.0,
        per_context_s=0.0,
    ),
    kv_capacity_tokens=10**6,
    kv_bytes_per_token=1.0,
    max_batch_size=1,
    chunk_tokens=10**6,
    num_gpus=1,
)


def closed_form_wait(load: float, *, is_constant: bool) -> float:
    """Mean wait over the mean service: Pollaczek and Khinchine's, of M/D/1 or of M/M/1.

    Examples
    --------
    >>> closed_form_wait(0.5, is_constant=False), closed_form_wait(0.5, is_constant=True)
    (1.0, 0.5)
    """
    return load / (1.0 - load) / (2.0 if is_constant else 1.0)


def mean_wait(load: float, num: int, rng: np.random.Generator, *, is_constant: bool) -> float:
    """Mean wait of requests in a simulated instance, over the mean service.

    Gaps and services are drawn and scaled to their exact means, which takes most of the noise away.
    """
    gaps_s = _scale(rng.exponential(1.0, num), 1.0 / load)
    tokens = np.full(num, float(_TOKENS))
    if not is_constant:
        tokens = np.maximum(np.rint(_scale(rng.exponential(1.0, num), _TOKENS)), 1.0)
    arrivals_s = np.cumsum(gaps_s)
    requests = tuple(
        Request(request_id=number, arrival_s=at_s, prompt_tokens=size, output_tokens=1)
        for number, (at_s, size) in enumerate(
            zip(arrivals_s.tolist(), tokens.astype(int).tolist(), strict=True)
        )
    )
    world = World(
        requests=requests,
        engine=_ENGINE,
        initial={MIXED: 1},
        slo=Slo(ttft_s=1.0, gap_s=1.0),
        limits=ScalingLimits(max_total=1),
    )
    times = simulate_fixed(world)
    waits_s = times.first_token_s - times.arrival_s - tokens * _TOKEN_S
    return float(waits_s.mean()) / (_TOKENS * _TOKEN_S)


def _scale(drawn: npt.NDArray[np.float64], mean: float) -> npt.NDArray[np.float64]:
    scaled: npt.NDArray[np.float64] = drawn * (mean / float(drawn.mean()))
    return scaled


def run(config: QueuesConfig) -> None:
    """Print the mean waits of both queues at each load, with 95 % intervals over runs."""
    require_count("--runs", "value", config.runs)
    require_count("--num-requests", "value", config.num_requests)
    choice = config.choice()
    sys.stdout.write("queue  load  closed form  simulated            error\n")
    rows, errors = [], {}
    for is_constant in (False, True):
        for load in LOADS:
            waits = _waits(load, config, is_constant=is_constant)
            found = mean_and_interval(waits)
            exact = closed_form_wait(load, is_constant=is_constant)
            name = "M/D/1" if is_constant else "M/M/1"
            sys.stdout.write(
                f"{name}  {load:4.0%}  {exact:11.4f}  {found.mean:8.4f} ± {found.half_width:.4f}  "
                f"{found.mean / exact - 1.0:+8.2%}\n"
            )
            sizes = {"mean_wait": found.mean, "half_width": found.half_width}
            rows.append({"queue": name, "load": load, "closed_form": exact, **sizes})
            errors[f"{name} at {load:.0%}"] = 100.0 * (np.array(waits) / exact - 1.0)
    DOCUMENT.add(rows=rows)
    if config.out is not None:
        page = groups_report(
            config,
            f"{PROG} queues",
            errors,
            name="queue_errors",
            title="Waits of an instance against closed forms",
            question="Do requests wait on an instance as the theory of queues says?",
            answer="Mean errors: "
            + "; ".join(f"{name} {each.mean():+.2f} %" for name, each in errors.items()),
            label="error of the mean wait [%]",
            points="each run",
        )
        files = choice.row_files({"queues": pd.DataFrame(rows)}) | choice.report_files(page)
        files |= result_file(repeated_settings(config), rows=rows)
        for path in write_files(config.out, files):
            sys.stdout.write(f"written: {path}\n")


def _waits(load: float, config: QueuesConfig, *, is_constant: bool) -> list[float]:
    rngs = (np.random.default_rng([config.seed, run]) for run in range(config.runs))
    return [mean_wait(load, config.num_requests, rng, is_constant=is_constant) for rng in rngs]
