"""Runs of the reference runtime for tests: processes that meet in a file, and one alone."""

import json
import os
import subprocess
import sys
from dataclasses import replace

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


def train(folder, num_ranks, *flags, steps=3):
    """Train with a process a rank; the records of each rank."""
    common = [str(folder), "--store", f"file://{folder}/store", "--steps", str(steps), *flags]
    pipes = [os.pipe() for _ in range(num_ranks)]
    nothing = [os.open(os.devnull, os.O_RDONLY) for _ in range(num_ranks)]
    seats = [
        Seat("", stdin, stdout, [*common, "--rank", str(rank)])
        for rank, (stdin, (_, stdout)) in enumerate(zip(nothing, pipes, strict=True))
    ]
    theirs = [*nothing, *(stdout for _, stdout in pipes)]
    command = [sys.executable, "-m", "scenarios.rehearse.forked_ranks", json.dumps(seats)]
    with subprocess.Popen(command, pass_fds=theirs) as running:
        for one in theirs:
            os.close(one)
        texts = []
        for said, _ in pipes:
            with os.fdopen(said) as stream:
                texts.append(stream.read())
    assert running.returncode == 0, texts
    lines = [[line for line in text.splitlines() if line[:1] == "{"] for text in texts]
    return [[json.loads(line) for line in own] for own in lines]


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
