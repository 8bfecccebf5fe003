"""A runtime of any plan: what a trainer could gain that had no limits but its GPUs."""

from agents.trainers.trainer import Trainer

REFERENCE_TRAINER = Trainer(
    name="reference",
    title="a trainer without limits",
    source="this project: every plan that des.Plan can say, with GPUs for each stage",
    chooses_ways=True,
    uses_nccl=False,
)
