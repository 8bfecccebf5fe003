"""The whole run of an answer: days, dollars, bytes, checkpoints and expected interruptions."""

import math
from dataclasses import dataclass

from agents.answer.number_texts import duration, figure, gigabytes
from agents.answer.run_terms import RunTerms
from agents.answer.sections import Section
from agents.replanning.move_cost import checkpoint_bytes
from agents.search.bound_rows import BoundRow
from des.views.prices import SECONDS_PER_HOUR


@dataclass(frozen=True, kw_only=True)
class WholeRun:
    """Expected figures of a run under one plan.

    Attributes
    ----------
    training_s
        Time of its steps alone. [s]
    num_interruptions
        Expected number.
    lost_s
        Expected time of restarts and of work done again. [s]
    usd
        GPUs for the whole time, and bytes; None where the world does not price its GPUs. [USD]
    wan_bytes
        Bytes between sites. [bytes]
    checkpoint_bytes
        One checkpoint: weights, and the optimiser's state in FP32. [bytes]
    """

    terms: RunTerms
    num_steps: int
    training_s: float
    num_interruptions: float
    lost_s: float
    usd: float | None
    wan_bytes: float
    checkpoint_bytes: float
    num_checkpoints: int

    @property
    def total_s(self) -> float:
        """Time from the first step to the last, interruptions included. [s]"""
        return self.training_s + self.lost_s


def whole_run(row: BoundRow, terms: RunTerms) -> WholeRun:
    """Return the expected figures of a run.

    Interruptions come at a rate while the run lasts, those of the time lost included, so that the
    whole time is that of its steps over one less the share lost.

    Raises
    ------
    ValueError
        If interruptions lose more than all of the time.
    """
    bound, figures = row.bound, row.figures
    workload, domains = bound.workload, bound.topology.domains
    needed = terms.num_tokens * figures.token_factor
    num_steps = math.ceil(needed / workload.tokens_per_iteration)
    training_s = num_steps * figures.step_s
    num_gpus = sum(domains[site].num_gpus for site in row.candidate.sites)
    per_s = num_gpus / (terms.gpu_hours_per_interruption * SECONDS_PER_HOUR)
    share_lost = per_s * (terms.checkpoint_s / 2.0 + terms.restart_s)
    if share_lost >= 1.0:
        raise ValueError(
            f"run: checkpoint_s must be below {2.0 * (1.0 / per_s - terms.restart_s):.4g} s, at "
            f"which interruptions of {num_gpus} GPUs lose all the time; got {terms.checkpoint_s:g}"
        )
    total_s = training_s / (1.0 - share_lost)
    gpu_usd = _gpu_usd_per_s(row) * (total_s - training_s)
    return WholeRun(
        terms=terms,
        num_steps=num_steps,
        training_s=training_s,
        num_interruptions=per_s * total_s,
        lost_s=total_s - training_s,
        usd=None if figures.usd is None else num_steps * figures.usd + gpu_usd,
        wan_bytes=num_steps * figures.wan_bytes,
        checkpoint_bytes=checkpoint_bytes(workload),
        num_checkpoints=math.floor(training_s / terms.checkpoint_s) + 1,
    )


def _gpu_usd_per_s(row: BoundRow) -> float:
    """Price of all GPUs of the sites in use; 0 for those without one. [USD/s]"""
    domains = row.bound.topology.domains
    own = (domains[site] for site in sorted(row.candidate.sites))
    usd_per_hour = math.fsum(one.num_gpus * (one.gpu_price_usd_per_hour or 0.0) for one in own)
    return usd_per_hour / SECONDS_PER_HOUR


def whole_run_section(run: WholeRun) -> Section:
    """Return the figures for a page."""
    terms = run.terms
    lines = [
        f"{run.num_steps:,} steps in {duration(run.total_s)}: {duration(run.training_s)} of steps, "
        f"{duration(run.lost_s)} of restarts and of work done again",
        f"{figure(run.num_interruptions)} interruptions expected, one in "
        f"{terms.gpu_hours_per_interruption:,.0f} GPU hours",
        f"{figure(run.wan_bytes / 1e12)} TB between sites; a checkpoint of "
        f"{gigabytes(run.checkpoint_bytes)} GB every {duration(terms.checkpoint_s)}, "
        f"{run.num_checkpoints:,} in all",
    ]
    if run.usd is not None:
        lines.insert(1, f"{figure(run.usd)} USD: all GPUs of the sites in use, and bytes")
    return Section(title=f"The whole run, {terms.num_tokens:,} tokens", lines=tuple(lines))
