"""Workloads as a trainer trains them, and the shapes that GPUs divide."""

from agents.trainers.trainer import Trainer
from des import Workload
from des.job.models import architecture_workload
from des.job.workload import ModelShape


def trained_workload(workload: Workload, trainer: Trainer) -> Workload:
    """Return a workload with gradients of the trainer's default type; an ideal one takes any.

    Raises
    ------
    ValueError
        If its layers are not those of a model, so that GPUs cannot divide them.
    """
    if trainer.is_ideal or workload.gradient_precision == trainer.gradient_precision:
        return workload
    shape = whole_shape(workload)
    return architecture_workload(
        shape.architecture,
        num_layers=shape.num_layers,
        num_microbatches=workload.num_microbatches,
        microbatch_size=int(shape.batch_size),
        sequence_length=shape.sequence,
        recomputation=shape.recomputation,
        gradient_precision=trainer.gradient_precision,
    )


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
