"""Workloads as a trainer trains them, and the shapes that GPUs divide."""

from dataclasses import replace

from agents.trainers.trainer import Trainer
from des import Workload
from des.job.workload import ModelShape


def trained_workload(workload: Workload, trainer: Trainer) -> Workload:
    """Return a workload with gradients of the trainer's default type; an ideal one takes any."""
    if trainer.is_ideal:
        return workload
    return replace(workload, gradient_precision=trainer.gradient_precision)


def whole_shape(workload: Workload) -> ModelShape:
    """Shape of a workload in microbatches of whole sequences.

    Raises
    ------
    ValueError
        If it has none.
    """
    shape = workload.shape
    if shape is None or shape.batch_size != int(shape.batch_size):
        raise ValueError(
            f"bind: workload {workload.name} must have the shape of a model in microbatches of "
            f"whole sequences, for GPUs to divide it; got {shape}"
        )
    return shape
