"""Decoupled DiLoCo: learners with clocks of their own, merged by a quorum after a grace window.

A learner does ``steps_between`` steps and reports, for ``overlap_steps`` more it does not wait, and
then until its report is merged. The syncers, a shard at every learner, merge one report after the
other [1]_: when a ``quorum`` has reported they wait for ``grace_steps`` more steps of the learner
that completed it, or until all have. Then they sum up all parameters, those of a learner that has
not reported with weight 0, so an exchange takes as long as that of DiLoCo; who comes late is in the
next one. A change weighs by the tokens that its learner has seen for it, so shares of microbatches
are weights. HALoS [2]_ merges likewise, each region when it reports: ``quorum=1`` without grace.

With a quorum of all learners it is DiLoCo whose exchange starts when the step is over, or with
``overlap_steps`` Streaming DiLoCo of one fragment.

References
----------
.. [1] A. Douillard et al., "Decoupled DiLoCo for resilient distributed pre-training", arXiv
   2604.21428, 2026: quorum, adaptive grace window, merging by tokens. Its abstract and accounts of
   others were at hand, which tell no default of quorum or grace.
.. [2] G.-W. Kim et al., "HALoS: Hierarchical asynchronous local SGD over slow networks for
   geo-distributed large language model training", ICML'25, arXiv 2506.04531.
"""

from dataclasses import dataclass

from des.base.checks import require_count, require_non_negative, require_one_of, require_positive
from des.plan.synchronisation import Fragment, OuterState, ReplicatedModel, Synchronisation


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoupledDiLoCo:
    """All parameters of the learners that have reported, after ``steps_between`` steps of each."""

    steps_between: int = 100
    bits_per_value: float = 16.0
    quorum: int = 1
    grace_steps: float = 0.0
    overlap_steps: int = 0
    outer_state: OuterState = "gpu"

    def __post_init__(self) -> None:
        owner = "Decoupled DiLoCo"
        require_count(owner, "steps_between", self.steps_between)
        if self.steps_between == 1:
            raise ValueError(
                f"{owner}: steps_between must be at least 2, as learners that exchange after every "
                "step wait for each other; got 1"
            )
        require_positive(owner, "bits_per_value", self.bits_per_value)
        require_count(owner, "quorum", self.quorum)
        require_non_negative(owner, "grace_steps", self.grace_steps)
        if self.overlap_steps != 0:
            require_count(owner, "overlap_steps", self.overlap_steps, self.steps_between - 1)
        require_one_of(owner, "outer_state", self.outer_state, ("gpu", "cpu"))

    @property
    def behind_backward(self) -> bool:
        """A learner reports when its step is over, the optimiser's update included."""
        return False

    def fragments(self, num_layers: int) -> tuple[Fragment, ...]:
        """One, of all layers."""
        return (Fragment(layers=tuple(range(num_layers)), due_step=self.steps_between),)

    def exposed_s(self, transfer_s: float, model: ReplicatedModel) -> float:
        """Part that the steps of overlap do not hide, of learners that are alike."""
        return max(0.0, transfer_s - self.overlap_steps * model.step_time_s)


def check_learners(mode: Synchronisation, num_learners: int, shares_domains: bool) -> None:
    """Refuse a quorum of more learners than a plan has, and learners that share domains."""
    if num_learners == 1 or not isinstance(mode, DecoupledDiLoCo):
        return
    if mode.quorum > num_learners or shares_domains:
        raise ValueError(
            f"plan: quorum must be at most the {num_learners} learners, which share no domain; got "
            f"{mode.quorum} and shares_domains={shares_domains}"
        )
