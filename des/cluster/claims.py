"""Claims on a cluster: GPUs granted immediately to users that are no jobs, by its policy."""

from des.clock import Clock
from des.cluster.engine import QueueEngine
from des.cluster.live_job import LiveJob
from des.cluster.plain_pricing import PlainPricing
from des.cluster.policy import Decision, Policy, Pricing
from des.cluster.queued_job import QueuedJob
from des.cluster.world import World


class ClaimedCluster(QueueEngine):
    """A cluster of training jobs on a shared clock, with claims on its GPUs.

    A claim passes all jobs that wait. Where it finds no free GPUs, running jobs give way to it
    under the ordering and the preemption of the policy, as to a job with its key; otherwise it is
    refused. A claim never gives way: its GPUs are its own until they are released.

    Raises
    ------
    ValueError
        If the world has changes or failures of nodes, or the rules of Blox.
    """

    def __init__(
        self,
        world: World,
        policy: Policy,
        *,
        clock: Clock,
        pricing: Pricing | None = None,
        seed: int = 0,
    ) -> None:
        if world.blox is not None or world.changes or world.failures is not None:
            raise ValueError(
                "cluster world with claims: blox, changes and failures must be none, as a claim "
                "keeps its GPUs until they are released"
            )
        prices = pricing or PlainPricing(replacement=world.replacement)
        super().__init__(world, policy, prices, seed, None, clock=clock)
        self.num_refused = 0
        """Claims that were refused."""

    def claim(self, wanted: QueuedJob) -> LiveJob | None:
        """Take GPUs now, from running jobs if need be; None: refused."""
        now_s = self._clock.now
        self._view.now_s = now_s
        claim = LiveJob(wanted)
        claim.number = self._num_admitted
        claim.key = self._policy.ordering.key(claim, now_s)
        self._accounts.until(now_s)
        decision = self._decider.decide_now(claim)
        launched = [each for each in decision.launched if each[0] is not claim]
        if len(launched) == len(decision.launched):
            self.num_refused += 1
            return None
        self._num_admitted += 1
        claim.allocation = next(gpus for each, gpus in decision.launched if each is claim)
        claim.held, claim.launch_s = claim.width, now_s
        self._accounts.num_lent += claim.held
        if decision.suspended:
            self._apply(Decision(decision.suspended, launched), now_s)
            self._wake()
        return claim

    def release(self, claim: LiveJob) -> None:
        """Give the GPUs of a claim back; waiting jobs may have them."""
        self._accounts.until(self._clock.now)
        self._free.give(claim.allocation)
        self._accounts.num_lent -= claim.held
        claim.allocation, claim.held = (), 0
        self._wake()

    def num_gpus_of(self, node: int) -> int:
        """GPUs of a node."""
        return self._world.nodes.nodes[node].num_gpus

    def rooms(self, wanted: QueuedJob) -> list[int]:
        """Most GPUs of each node for a claim: free ones, and those of jobs ordered behind it."""
        ordering, preempting, view = self._policy.ordering, self._policy.preempting, self._view
        now_s, free = self._clock.now, self._free
        found = [num if free.takes_jobs(node) else 0 for node, num in enumerate(free.free_of)]
        if preempting is None or not (ordering.preempts or preempting.moves):
            return found
        key = ordering.key(LiveJob(wanted), now_s)
        for job in view.running.values():
            if now_s - job.launch_s < ordering.quantum_s:
                continue
            if preempting.moves or ordering.key(job, now_s) > key:
                for node, gpus in job.allocation:
                    found[node] += gpus.bit_count()
        return found
