"""Compiled code of one checkout, timed call by call on demand: what `bench.revisions` starts.

Run as a script in the folder of either checkout, so it imports only what `bench` had under the same
name in older revisions. It prints a JSON object, name of a case -> CPU seconds of a call, and then
answers lines ``name<TAB>number of calls`` with the CPU seconds of an item.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np

from bench.batches import event_by_event, iterations
from bench.tasks import even_split, placement_task, stepping
from bench.timing import Contestant
from bench.worlds import FAIR, LAWS, SEED, SIZES, SMALL, Size, job, mesh, returning, straight
from des import Placement, Plan
from des.compiled.simulate import simulate_compiled

NUM_SEEDS, NUM_LANES, NUM_ENVS, NUM_PLANS = 8, 4096, 1024, 1024
JUDGES = "agents.judge.steady_judge", "agents.epochs.steady_judge"
"""Modules of the judge of many plans, the present one first and its home until November 2026."""


def cases(sizes: tuple[Size, ...]) -> Iterator[Contestant]:
    """Yield the compiled rows of a page of figures, of one thread."""
    for size in sizes:
        workload = job(size.num_microbatches)
        line, back = (plan(size, workload.num_layers) for plan in (straight, returning))
        for law in LAWS:
            world = mesh(size.num_stages, LAWS[law])
            by_events = event_by_event(world, workload, line, num_seeds=NUM_SEEDS)
            yield Contestant(name=f"by events, {size}, {law}", call=by_events, num_items=NUM_SEEDS)
            if law == "moving":  # batches hold their links since November 2026
                continue
            batch = iterations(world, workload, line, num_lanes=NUM_LANES, num_threads=1)
            yield Contestant(name=f"batch, {size}, {law}", call=batch, num_items=NUM_LANES)
            yield Contestant(
                name=f"batch with metrics, {size}, {law}",
                call=_stepping(size, law),
                num_items=NUM_ENVS,
            )
        for name, world, plan in (
            ("moving, coming back", mesh(size.num_stages), back),
            ("moving, shared fairly", mesh(size.num_stages, LAWS["moving"], FAIR), line),
        ):
            call = event_by_event(world, workload, plan, num_seeds=NUM_SEEDS)
            yield Contestant(name=f"by events, {size}, {name}", call=call, num_items=NUM_SEEDS)
        yield Contestant(name=f"all results, {size}, moving", call=_simulating(size))
        yield Contestant(
            name=f"many plans, {size}, steady", call=_judging(size), num_items=NUM_PLANS
        )


def _simulating(size: Size) -> Callable[[], object]:
    """Return a call that simulates an iteration with all spans, the next of some courses."""
    world, workload = mesh(size.num_stages), job(size.num_microbatches)
    plan = straight(size, workload.num_layers)
    epochs = cycle([world.epoch_of(SEED + each) for each in range(NUM_SEEDS)])
    return lambda: simulate_compiled(next(epochs), workload, plan)


def _stepping(size: Size, law: str) -> Callable[[], object]:
    task = placement_task(size, law)
    actions = even_split(size, task)[None, None].repeat(NUM_ENVS, axis=1)
    return stepping(task, NUM_ENVS, 1, actions)


def _judging(size: Size) -> Callable[[], object]:
    """Return a call that judges plans of even layers, in random orders of the domains."""
    home = next(name for name in JUDGES if Path(*name.split(".")).with_suffix(".py").is_file())
    world, workload = mesh(size.num_stages, LAWS["steady"]), job(size.num_microbatches)
    judge = importlib.import_module(home).SteadyJudge(workload, size.num_stages)
    rng = np.random.default_rng(SEED)
    counts = [one.num_layers for one in Placement.even(size.num_stages, workload.num_layers).stages]
    orders = [rng.permutation(size.num_stages).tolist() for _ in range(NUM_PLANS)]
    plans = judge.plans_of([Plan(placement=Placement.contiguous(o, counts)) for o in orders])
    epoch = world.epoch_of(SEED)
    return lambda: judge.scores(judge.job_of(epoch), plans)


def cpu_s(contestant: Contestant, num_calls: int) -> float:
    """CPU time of an item, over a number of calls. [s]"""
    began_s = time.process_time()
    for _ in range(num_calls):
        contestant.call()
    return (time.process_time() - began_s) / (num_calls * contestant.num_items)


def main() -> None:
    """Answer the process that has started this one."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is no answer
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    held = {one.name: one for one in cases(SMALL if "--quick" in sys.argv else SIZES)}
    call_s = {}
    for name, one in held.items():
        one.call()
        call_s[name] = min(cpu_s(one, 1) for _ in range(3)) * one.num_items
    print(json.dumps(call_s), file=answers, flush=True)
    for line in sys.stdin:
        name, num_calls = line.split("\t")
        print(cpu_s(held[name], int(num_calls)), file=answers, flush=True)


if __name__ == "__main__":
    main()
