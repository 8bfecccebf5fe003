"""Rules that the stages of every pipeline obey: what comes before and behind their own work."""

from dataclasses import dataclass

from agents.planners.bounds.job_figures import JobFigures, Real


@dataclass(frozen=True, kw_only=True)
class PipelineRule:
    """Least time of a pipeline from one stage: its work, and a share of that of earlier ones.

    Attributes
    ----------
    rates
        Most work that each domain does in a second, (K,).
    work
        Work of a microbatch in all layers.
    share
        Part of a stage's time of a microbatch that every later stage waits for at least.
    hop_s
        Messages between two stages that every later stage waits for, (K, K). [s]
    """

    rates: Real
    work: float
    share: float
    hop_s: Real


def pipeline_rules(figures: JobFigures) -> tuple[PipelineRule, ...]:
    """Return the rules of a job: of the whole passes and, where they are halved, of F and D.

    A stage starts with the first forward pass of those before it, and its last gradient goes back
    through them. Weight gradients may fill the time behind that, so a stage that does them later
    waits for the first forward passes alone; F and D cannot.
    """
    both_s = figures.message_s + figures.message_s.T
    if not figures.halved:
        return (_rule(figures.layer_s, figures.layer_s, both_s),)
    early_s = figures.forward_s + figures.input_gradient_s
    return (
        _rule(figures.layer_s, figures.forward_s, figures.message_s),
        _rule(early_s, early_s, both_s),
    )


def _rule(layer_s: Real, waited_s: Real, hop_s: Real) -> PipelineRule:
    """Refer all domains to the quickest one, layer by layer at their best."""
    reference_s = layer_s[int(layer_s.sum(axis=1).argmin())]
    return PipelineRule(
        rates=(reference_s / layer_s).max(axis=1),
        work=float(reference_s.sum()),
        share=float((waited_s / layer_s).min()),
        hop_s=hop_s,
    )


def update_share(figures: JobFigures) -> float:
    """Least update of a layer in its time of a microbatch."""
    return float((figures.update_s / figures.layer_s).min())
