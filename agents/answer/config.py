"""Settings of the command that answers: the fields are its flags."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents.answer.run_terms import CHECKPOINT_S
from agents.trainers.table import DEFAULT_TRAINER, TRAINERS, trainer_named
from des.base.flags import option, required
from des.job.models import ATTENTION_HELP
from des.job.transformer import AttentionKernel
from des.plan.replacement import GPU_HOURS_PER_INTERRUPTION, RESTART_S
from des.world.domain_load import LOADS_HELP
from des.worlds.world_flags import LayerFlags, NetworkFlag

PROG = "python -m agents.decide"

Deciders = Literal["both", "search", "hi_ppo"]
"""Search and policies together, or one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(LayerFlags, NetworkFlag):
    """Flags of a decision."""

    network: str = required("world as it is now: YAML or JSON, or a shipped name", is_file=True)
    job: str | None = option(
        None,
        "job file with model, microbatches, microbatch_size, sequence_length; or an example's name",
        is_file=True,
    )
    microbatches: int = option(32, "sequences of an iteration")
    tokens_per_step: str | None = option(
        None, "tokens of an iteration in place of --microbatches, such as 4M or 512Ki"
    )
    attention: AttentionKernel | None = option(None, ATTENTION_HELP, default_text="flash")
    tokens: str | None = option(
        None,
        "tokens of the whole run, such as 15T: adds days, USD, bytes, checkpoints, interruptions",
        default_text="none",
    )
    gpu_hours_per_interruption: float = option(
        GPU_HOURS_PER_INTERRUPTION,
        "GPU hours of the whole run between interruptions; by default as Llama 3 405B had them",
    )
    checkpoint_s: float = option(CHECKPOINT_S, "time between checkpoints of the whole run [s]")
    trainer: str = option(
        DEFAULT_TRAINER,
        f"program that runs the plan, one of {', '.join(TRAINERS)}; under ideal a domain is one "
        "perfect device that runs any schedule, for theory",
    )
    schedules: tuple[str, ...] = option(
        (), "schedules to choose from, such as 1f1b", default_text="all that the trainer runs"
    )
    objective: str = option(
        "time",
        "time, cost (hours of GPUs, and bytes, in USD), or weights w1,w2,w3 of R = w1 R_eff + w2 U "
        "- w3 C: speed over the quickest plan's, utilisation, and bytes over the most of any plan",
    )
    at_most: str | None = option(
        None, 'limit of a step, such as "90 s" or "5 USD"', default_text="none"
    )
    token_factor: float | None = option(
        None,
        "tokens that changed training needs over those of unchanged training, at least 1",
        default_text="from published losses",
    )
    last: str | None = option(
        None,
        "plan in force: a document as --json writes it; a pipeline such as East*28,West*52 where "
        "the policies alone decide; none: a first decision",
    )
    last_schedule: str = option("1f1b_4x", "schedule in force")
    loads: str | None = option(None, LOADS_HELP)
    restart_s: float = option(RESTART_S, "time that a change of plan takes to restart [s]")
    restart_only: bool = option(False, "a move costs a restart only, no transfer")
    most_slowdown: float | None = option(
        None,
        "reject plans whose iteration takes longer than that of the quickest plan known now by "
        "more than this share, such as 0.08; not where the change takes all of an epoch",
    )
    deciders: Deciders = option(
        "search", "search, policies of Hi-PPO, whose proposals are bound, or both together"
    )
    across_only: bool = option(False, "decide across domains, not inside them")
    checkpoint: Path | None = option(
        None, "checkpoint of Hi-PPO", is_file=True, default_text="shipped, seed 0"
    )
    local_checkpoint: Path | None = option(
        None, "local agent", is_file=True, default_text="shipped, seed 0"
    )
    base: str | None = option(
        None, "topology at nominal link speeds", is_file=True, default_text="same as --network"
    )
    epoch_s: float = option(300.0, "time between decisions of Hi-PPO [s]")
    explain: bool = option(False, "say what limits the plan, and its neighbours")
    json: bool = option(False, "JSON for programs in place of a page of text")
    stream: bool = option(
        False, "read situations from standard input, JSON of flags a line; answer JSON a line"
    )
    horizon: str = option(
        "24h", "with --stream: time in which a move must have paid for itself, such as 90min or 2d"
    )
    out: Path | None = option(None, "file to write; none: standard output")

    @property
    def is_by_policies_alone(self) -> bool:
        """Whether the policies alone decide among perfect devices, which is JSON of its own."""
        is_json = self.json or self.stream
        return is_json and trainer_named(self.trainer).is_ideal and self.deciders == "hi_ppo"
