"""Trainers by the name users write."""

from collections.abc import Mapping
from types import MappingProxyType

from agents.trainers.deepspeed import DEEPSPEED
from agents.trainers.ideal import IDEAL
from agents.trainers.megatron import MEGATRON
from agents.trainers.reference import REFERENCE_TRAINER
from agents.trainers.torchtitan import TORCHTITAN
from agents.trainers.trainer import Trainer

TRAINERS: Mapping[str, Trainer] = MappingProxyType(
    {
        trainer.name: trainer
        for trainer in (MEGATRON, TORCHTITAN, DEEPSPEED, REFERENCE_TRAINER, IDEAL)
    }
)
"""All trainers, the default first."""

DEFAULT_TRAINER = MEGATRON.name

TRAINER_HELP = (
    f"trainer that runs the plans on the GPUs there are: {', '.join(TRAINERS)} (perfect devices, "
    "one a domain)"
)
"""Meaning of the flag that names one."""


def trainer_named(name: str) -> Trainer:
    """Look up a trainer.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.
    """
    trainer = TRAINERS.get(name)
    if trainer is None:
        raise ValueError(f"trainer: must be one of {', '.join(TRAINERS)}; got {name!r}")
    return trainer
