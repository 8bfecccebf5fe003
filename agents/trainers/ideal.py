"""No trainer: a domain is one perfect device, for theory and for ASTRA-sim at one NPU a domain."""

from agents.trainers.trainer import Trainer

IDEAL = Trainer(
    name="ideal",
    title="perfect devices",
    source="this project: all GPUs of a domain work as one device that loses nothing to sharing",
    chooses_ways=True,
    is_ideal=True,
)
