"""Pricing of jobs by the training simulator, on links that they share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agents.cluster.pricing.iteration_prices import IterationPrices, LinkName, PlacedJob
from agents.cluster.pricing.link_rules import LinkRule
from agents.cluster.pricing.link_shares import price_together
from des.cluster.free_gpus import FreeCounts
from des.cluster.live_job import LiveJob
from des.cluster.plain_pricing import PlainPricing
from des.cluster.policy import Traffic


class JobPlacer(Protocol):
    """Plans of jobs on their GPUs, in the form of the training simulator."""

    def placed(self, job: LiveJob, free: FreeCounts) -> PlacedJob:
        """Return the job on the GPUs that it holds; the same object for equal arguments."""

    def moved_bytes(self, job: LiveJob, free: FreeCounts) -> Mapping[LinkName, float]:
        """Model state that a launch sends over links. [bytes]"""

    def move_s(self, job: LiveJob, free: FreeCounts) -> float:
        """Time that this takes. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPricing:
    """Rates by the time of an iteration while other jobs use the same links.

    A job's rate is the time of an iteration at rate 1 over the one that it takes now; the
    factors of the plain pricing (type of GPU, speed curve) apply as well.
    """

    placer: JobPlacer
    prices: IterationPrices
    rule: LinkRule = "fair"
    plain: PlainPricing = field(default_factory=PlainPricing)
    _solved: dict[tuple[tuple[str, int], ...], dict[tuple[str, int], float]] = field(
        default_factory=dict
    )

    def rates(self, running: Mapping[int, LiveJob], free: FreeCounts) -> Mapping[int, float] | None:
        """Rates of the jobs that use links."""
        found: dict[int, float] = {}
        placed = {
            number: one
            for number, job in running.items()
            if (one := self.placer.placed(job, free)).topology.links
        }
        for group in _groups(placed):
            times_s = self._times_s([placed[number] for number in group])
            for number in group:
                one = placed[number]
                rate = one.reference_s / times_s[one.key, one.priority]
                found[number] = rate * self.plain.rate(running[number], free)
        return found

    def rate(self, job: LiveJob, free: FreeCounts) -> float:
        """Service per second of a job that has its links to itself."""
        placed = self.placer.placed(job, free)
        alone_s = self.prices.price(placed, {}).time_s
        return placed.reference_s / alone_s * self.plain.rate(job, free)

    def restart_s(self, job: LiveJob, free: FreeCounts) -> float:
        """Time of a restart, and of model state that moves to other domains."""
        restart_s = self.plain.restart_s(job, free)
        return restart_s + (self.placer.move_s(job, free) if job.launches > 1 else 0.0)

    def traffic(self, job: LiveJob, free: FreeCounts) -> Traffic | None:
        """Bytes of iterations, which do not depend on shares, and of a move."""
        placed = self.placer.placed(job, free)
        moved = self.placer.moved_bytes(job, free)
        if not placed.topology.links and not moved:
            return None
        uses = self.prices.price(placed, {}).links
        per_service_s = self.plain.rate(job, free) * placed.reference_s
        return Traffic({link: use.num_bytes / per_service_s for link, use in uses.items()}, moved)

    def _times_s(self, jobs: list[PlacedJob]) -> dict[tuple[str, int], float]:
        """Times of iterations of a group; equal groups are solved once. [s]"""
        jobs = sorted(jobs, key=lambda job: (job.key, job.priority))
        group = tuple((job.key, job.priority) for job in jobs)
        if group not in self._solved:
            prices = price_together(jobs, self.prices, self.rule)
            times_s = [price.time_s for price in prices]
            self._solved[group] = dict(zip(group, times_s, strict=True))
        return self._solved[group]


def _groups(placed: Mapping[int, PlacedJob]) -> list[list[int]]:
    """Jobs that share links with each other, directly or through others."""
    groups: list[tuple[set[LinkName], list[int]]] = []
    for number, job in placed.items():
        links = {(link.source, link.target) for link in job.topology.links}
        members = [number]
        apart = []
        for others in groups:
            if others[0] & links:
                links |= others[0]
                members = others[1] + members
            else:
                apart.append(others)
        groups = [*apart, (links, members)]
    return [members for _, members in groups]
