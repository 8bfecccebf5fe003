"""A training of several processes for tests: PyTorch's gloo, equal steps wherever it is resumed.

``python gloo_job.py FOLDER ITERATIONS GATE_AT``: in iteration GATE_AT of its first launch rank 0
waits until the pipe FOLDER/gate is written. The checkpoint holds the losses so far.
"""

import os
import sys
from pathlib import Path

import torch
from torch import distributed

from scenarios.cluster.client import Lease


def gradient_of(model: torch.nn.Linear, rank: int, iteration: int) -> tuple[float, torch.Tensor]:
    """Loss and gradient of one rank's batch of an iteration."""
    generator = torch.Generator().manual_seed(1000 * rank + iteration)
    batch = torch.randn(8, 4, generator=generator)
    loss = (model(batch).squeeze(1) - batch.sum(1)).square().mean()
    model.zero_grad()
    loss.backward()
    assert model.weight.grad is not None
    return loss.item(), model.weight.grad.clone()


def new_model() -> tuple[torch.nn.Linear, torch.Tensor]:
    """Model and momentum as a training begins with them."""
    model = torch.nn.Linear(4, 1, bias=False)
    torch.nn.init.constant_(model.weight, 0.1)
    return model, torch.zeros(1, 4)


def step(model: torch.nn.Linear, momentum: torch.Tensor, gradient: torch.Tensor) -> None:
    """One step of SGD; `torch.optim` takes a second to load in each process."""
    with torch.no_grad():
        model.weight -= 0.05 * momentum.mul_(0.9).add_(gradient)


def uninterrupted(num_iterations: int, world_size: int) -> list[float]:
    """Losses of rank 0 of a training that nothing interrupts, in one process."""
    model, momentum = new_model()
    losses = []
    for iteration in range(num_iterations):
        found = [gradient_of(model, rank, iteration) for rank in range(world_size)]
        losses.append(found[0][0])
        step(model, momentum, torch.stack([each for _, each in found]).sum(0) / world_size)
    return losses


def train(folder: Path, num_iterations: int, gate_at: int, rank: int, world_size: int) -> None:
    """Train from the checkpoint on, while the lease allows it."""
    model, momentum = new_model()
    saved, begun, losses = folder / "checkpoint.pt", 0, []
    if saved.exists():
        content = torch.load(saved)
        begun, losses = content["iteration"], content["losses"]
        model.load_state_dict(content["model"])
        momentum = content["momentum"]
    lease = Lease()
    for iteration in range(begun, num_iterations):
        if not lease.goes_on(iteration):
            content = {"model": model.state_dict(), "momentum": momentum}
            if rank == 0:
                torch.save({**content, "iteration": iteration, "losses": losses}, saved)
            (folder / f"left-{rank}").write_text(str(iteration), "utf-8")
            return
        if rank == 0 and begun == 0 and iteration == gate_at:
            (folder / "gate").read_text("utf-8")
        loss, gradient = gradient_of(model, rank, iteration)
        distributed.all_reduce(gradient)
        step(model, momentum, gradient / world_size)
        losses.append(loss)
    if rank == 0:
        (folder / "losses").write_text(" ".join(map(repr, losses)), "utf-8")


def main(folder: Path, num_iterations: int, gate_at: int) -> None:
    """Be one rank: join the others, train, and part from them."""
    variables = os.environ
    rank, world_size = int(variables["dist_rank"]), int(variables["world_size"])
    where = f"tcp://{variables['master_ip_address']}:{variables['master_port']}"
    distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=world_size)
    train(folder, num_iterations, gate_at, rank, world_size)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
