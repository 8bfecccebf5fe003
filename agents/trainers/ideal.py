"""No trainer: domains are perfect devices, for theory and for ASTRA-sim with an NPU for each."""

from agents.trainers.trainer import Trainer

IDEAL = Trainer(
    name="ideal",
    title="perfect devices",
    source="this project: all GPUs of a domain work as one device that loses nothing to sharing",
    chooses_ways=True,
    is_ideal=True,
)
