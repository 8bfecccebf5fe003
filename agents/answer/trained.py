"""Trained policies of a configuration."""

from __future__ import annotations

from functools import cached_property

from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from agents.answer.config import Config
    from agents.decision.training_job import TrainingJob
    from agents.hi_ppo import bound_proposals
    from agents.hi_ppo import policies as hi_ppo_policies
    from agents.hi_ppo.local import decide as local_decide
    from agents.hi_ppo.local import policy, shipped
    from agents.hi_ppo.placement import proposals
    from des import Topology


class Trained:
    """Trained policies of a configuration, loaded when they are first used."""

    def __init__(self, config: Config) -> None:
        self._config = config

    @cached_property
    def across(self) -> hi_ppo_policies.Policies | None:
        """Policies across domains; None where the search decides alone."""
        if self._config.deciders == "search":
            return None
        return hi_ppo_policies.Policies.load(self._config.checkpoint or hi_ppo_policies.shipped())

    @cached_property
    def sketch(self) -> bound_proposals.Sketch | None:
        """Proposals of the policies, to be bound; None where the search decides alone."""
        if self.across is None:
            return None
        return bound_proposals.sketching(proposals.Proposer(self.across.placement))

    def outside(self, topology: Topology, job: TrainingJob) -> tuple[str, ...]:
        """Notes on what the policies across domains were not trained on; none without them."""
        if self.across is None:
            return ()
        misfits = self.across.trained_range.misfits(topology, job.workload(1))
        return tuple(f"{one}, the range that Hi-PPO was trained on" for one in misfits)

    @cached_property
    def local(self) -> local_decide.LocalAgent | None:
        """Local agent; None where the decision is across domains alone."""
        if self._config.across_only:
            return None
        path = self._config.local_checkpoint or shipped.shipped_local_file()
        return local_decide.LocalAgent(policy=policy.load_policy(path))
