"""Runs of the reference runtime for tests: processes that meet in a file, and one alone."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from bound_cases import job, sites
from launch_cases import bound_of

from agents.judge.step_times import mean_step
from scenarios.launch.launch_files import launch_files
from scenarios.rehearse.rank_runtime import RATE
from scenarios.rehearse.seats import Seat
from scenarios.rehearse.small_llama import TOKENS, LlamaStage, text_batch

LAYERS = 32


def launched(folder, plan, num_microbatches=6):
    """Write the launch of a plan of the reference runtime; returns its ranks."""
    bound = bound_of(
        replace(plan, sends="overlapped"),
        sites(),
        job(num_microbatches=num_microbatches),
        "reference",
    )
    parts = bound.topology, bound.workload, bound.plan, bound.corrections
    bound = replace(bound, step_s=mean_step(*parts)[0])
    files = launch_files(bound).files
    for name in ("runtime.json", "receives_first.csv", "receives_stock.csv"):
        (folder / name).write_text(files[name], "utf-8")
    return len(json.loads(files["runtime.json"])["stages_of_rank"])


class Training(NamedTuple):
    """A training with a process a rank, of the launch in a folder."""

    folder: Path
    num_ranks: int
    flags: Sequence[str] = ()
    steps: int = 3


def train(trainings):
    """Train one after the other, ranks forked from one process; records of each one's ranks."""
    pipes = [[os.pipe() for _ in range(one.num_ranks)] for one in trainings]
    nothing = os.open(os.devnull, os.O_RDONLY)
    theirs, seats = [nothing], []
    for one, own in zip(trainings, pipes, strict=True):
        store = f"file://{one.folder}/store"
        common = [str(one.folder), "--store", store, "--steps", str(one.steps), *one.flags]
        stdins = [os.dup(nothing) for _ in own]
        seats.append(
            [
                Seat("", stdin, stdout, [*common, "--rank", str(rank)])
                for rank, (stdin, (_, stdout)) in enumerate(zip(stdins, own, strict=True))
            ]
        )
        theirs += [*stdins, *(stdout for _, stdout in own)]
    command = [sys.executable, "-c", _FORK, *map(json.dumps, seats)]
    with subprocess.Popen(command, pass_fds=theirs) as running:
        for each in theirs:
            os.close(each)
        texts = [[_read(said) for said, _ in own] for own in pipes]
    assert running.returncode == 0, texts
    return [[_records(text) for text in own] for own in texts]


_FORK = """
import json, os, sys
import torch.fx.experimental.symbolic_shapes
from scenarios.rehearse.forked_ranks import main

for seats in sys.argv[1:]:
    if (child := os.fork()) == 0:
        os._exit(main([seats]))
    for _, stdin, stdout, _ in json.loads(seats):
        os.close(stdin)
        os.close(stdout)
    if os.waitpid(child, 0)[1]:
        raise SystemExit(1)
"""
"""Program that loads what ranks need once, and forks what `scenarios.rehearse` starts.

`torch.autograd.grad` loads the symbolic shapes where gradients are given; ranks leave without
freeing all of that.
"""


def _read(place):
    """All that is said in a pipe."""
    with os.fdopen(place) as stream:
        return stream.read()


def _records(text):
    """Records among the lines of a rank."""
    return [json.loads(line) for line in text.splitlines() if line[:1] == "{"]


def losses_of(records, steps=3):
    """Loss of each step, added over the last stages of replicas."""
    return [
        sum(one["loss"] or 0.0 for own in records for one in own if one.get("step") == step)
        for step in range(steps)
    ]


def alone(shares, steps=3):
    """Losses of one process: a sum of gradients a replica, then one over the replicas."""
    torch.set_num_threads(1)
    model, losses = LlamaStage(0, LAYERS, LAYERS, LAYERS), []
    parameters = list(model.parameters())
    for step in range(steps):
        sums, loss, microbatch = [], 0.0, 0
        for share in shares:
            own, own_loss = None, 0.0
            for _ in range(share):
                tokens, targets = text_batch(step, microbatch)
                microbatch += 1
                out = model(tokens, targets)
                weight = 1.0 / (sum(shares) * TOKENS)
                own_loss += weight * out.item()
                gradients = torch.autograd.grad(out * weight, parameters)
                own = (
                    gradients
                    if own is None
                    else [a + b for a, b in zip(own, gradients, strict=True)]
                )
            sums.append(own)
            loss += own_loss
        with torch.no_grad():
            for place, parameter in enumerate(parameters):
                total = sums[0][place]
                for own in sums[1:]:
                    total = total + own[place]
                parameter.sub_(RATE * total)
        losses.append(loss)
    return losses


def streamed(shares, layers, *, steps, period, overlap):
    """Losses of Streaming DiLoCo in one process: fragment 0 of even layers, and 1 of odd ones.

    Fragment ``f`` is due after step ``(f + 1) * period / 2`` of each period, from 1, and comes back
    ``overlap`` steps later, half mixed with what its replica has done meanwhile.
    """
    torch.set_num_threads(1)
    models = [LlamaStage(0, layers, layers, layers) for _ in shares]
    own = [
        [list(model.parameters_of(range(first, layers, 2))) for first in (0, 1)] for model in models
    ]
    outer = [[one.detach().clone() for one in parts] for parts in own[0]]
    momenta = [[torch.zeros_like(one) for one in parts] for parts in outer]
    losses, coming = [], {}
    for step in range(steps):
        losses.append(_inner_step(models, shares, step))
        for fragment, sums in coming.pop(step, ()):
            for place, change in enumerate(sums):
                momentum = momenta[fragment][place].mul_(0.9).add_(change)
                outer[fragment][place] -= 0.7 * (change + 0.9 * momentum)
                for parts in own:
                    with torch.no_grad():
                        parts[fragment][place].lerp_(outer[fragment][place], 0.5)
        for fragment in (0, 1):
            if (step + 1 - (fragment + 1) * period // 2) % period == 0:
                changes = [
                    [
                        (before - after.detach()) * (share / sum(shares))
                        for before, after in zip(outer[fragment], parts[fragment], strict=True)
                    ]
                    for parts, share in zip(own, shares, strict=True)
                ]
                sums = [one + other for one, other in zip(*changes, strict=True)]
                coming.setdefault(step + overlap, []).append((fragment, sums))
    return losses


def _inner_step(models, shares, step):
    """Let each replica do a step of its own; the sum of losses."""
    total, microbatch = 0.0, 0
    for model, share in zip(models, shares, strict=True):
        parameters, sums, loss = list(model.parameters()), None, 0.0
        for _ in range(share):
            out = model(*text_batch(step, microbatch))
            microbatch += 1
            weight = 1.0 / (share * TOKENS)
            loss += weight * out.item()
            own = torch.autograd.grad(out * weight, parameters)
            sums = own if sums is None else [a + b for a, b in zip(sums, own, strict=True)]
        with torch.no_grad():
            for parameter, own in zip(parameters, sums, strict=True):
                parameter.sub_(RATE * own)
        total += loss
    return total
