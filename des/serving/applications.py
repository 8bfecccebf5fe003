"""Several applications on one cluster: fleets that share a clock and servers, and an arbiter."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from des.base.checks import require_count, require_known
from des.clock import Clock
from des.serving.arbiters import ARBITERS, Claim, granted_instances
from des.serving.fleet_engine import Fleet
from des.serving.fleet_servers import STANDARD_SKU, Servers
from des.serving.fleet_world import Decision, History, ScalingPolicy, View, World, require_run_seed
from des.serving.instance_life import DECIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A stream of requests with its own pools and its own policy."""

    world: World
    policy: ScalingPolicy
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCluster:
    """Servers that applications share, and the arbiter that grants them where they are too few."""

    num_servers: int
    gpus_per_server: int = 8
    arbiter: str = "max_min"

    def __post_init__(self) -> None:
        require_count("cluster", "num_servers", self.num_servers)
        require_count("cluster", "gpus_per_server", self.gpus_per_server)
        require_known("cluster: arbiter must be a known name, got", self.arbiter, ARBITERS)


def run_applications(
    applications: Mapping[str, Application], cluster: SharedCluster, seed: int = 0
) -> dict[str, History]:
    """Simulate until the requests of every application are finished; a history of each.

    All decide at the same times. An application whose requests are finished gives up its instances.

    Raises
    ------
    ValueError
        If there is none, intervals of decisions differ, or the instances of the start do not fit.
    """
    servers = Servers(
        server_gpus={STANDARD_SKU: cluster.gpus_per_server}, max_servers=cluster.num_servers
    )
    return run_on_servers(
        applications, cluster.arbiter, Clock(), dict.fromkeys(applications, servers), seed
    )


def run_on_servers(
    applications: Mapping[str, Application],
    arbiter: str,
    clock: Clock,
    servers: Mapping[str, Servers],
    seed: int,
) -> dict[str, History]:
    """Simulate applications on a clock, each on servers that it may share with others.

    Raises
    ------
    ValueError
        If there is none, intervals of decisions differ, or the instances of the start do not fit.
    """
    require_run_seed(seed)
    intervals = {each.world.decision_interval_s for each in applications.values()}
    if len(intervals) != 1:
        raise ValueError(
            f"applications: must be at least 1, with the same decision_interval_s, got "
            f"{len(applications)} with {sorted(intervals)}"
        )
    shared = _Shared(applications, arbiter, clock, servers, seed)
    (interval_s,) = intervals
    while shared.open:
        shared.step(interval_s)
    return {name: shared.histories[name] for name in applications}


class _Shared:
    """Fleets of applications on one clock."""

    def __init__(
        self,
        applications: Mapping[str, Application],
        arbiter: str,
        clock: Clock,
        servers: Mapping[str, Servers],
        seed: int,
    ) -> None:
        self.applications, self.arbiter = applications, ARBITERS[arbiter]
        self.clock, self.servers = clock, servers
        self.open = {
            name: Fleet(each.world, seed, clock=clock, servers=servers[name])
            for name, each in applications.items()
        }
        self.memories = {
            name: each.policy.first_memory(each.world) for name, each in applications.items()
        }
        self.histories: dict[str, History] = {}

    def step(self, interval_s: float) -> None:
        """Simulate up to the next decisions, and carry them out as far as there are servers."""
        until_s = self.clock.now + interval_s
        ends_s = [
            fleet.world.horizon_s
            for fleet in self.open.values()
            if fleet.world.horizon_s is not None and fleet.world.horizon_s > self.clock.now
        ]
        self.clock.run(until=self.clock.at(min([until_s, *ends_s]), DECIDE))
        for name, fleet in list(self.open.items()):
            if fleet.is_over():
                self.histories[name] = fleet.history()
                fleet.give_up_all()
                del self.open[name]
        if self.clock.now < until_s:
            return
        seen: dict[str, tuple[View, Decision]] = {}
        for name, fleet in self.open.items():
            view, policy = fleet.view_now(), self.applications[name].policy
            decision, self.memories[name] = policy.decide(view, self.memories[name])
            seen[name] = (view, decision)
        for name, granted in self._granted(seen).items():
            view, decision = seen[name]
            fleet = self.open[name]
            fleet.apply(view, _within(decision, fleet.new_orders(decision), granted))

    def _granted(self, seen: Mapping[str, tuple[View, Decision]]) -> dict[str, int]:
        """New instances of each application, those with the largest instances first."""
        claims = {
            name: Claim(
                num_wanted=sum(self.open[name].new_orders(decision).values()),
                num_held=self.open[name].manager.get_status_summary()["total_instances"],
                num_gpus=max(one.num_gpus for one in self.open[name].world.all_engines),
                priority=self.applications[name].priority,
            )
            for name, (_, decision) in seen.items()
        }
        rooms = [self.servers[name].rooms() for name in claims]
        most = [max(of_server) for of_server in zip(*rooms, strict=True)]
        granted = granted_instances(list(claims.values()), most, self.arbiter)
        found = dict(zip(claims, granted, strict=True))
        return dict(sorted(found.items(), key=lambda each: -claims[each[0]].num_gpus))


def _within(decision: Decision, new: Mapping[str, int], granted: int) -> Decision:
    """Ask for no more new instances than are granted; the pool with the most gives up first."""
    missing = sum(new.values()) - granted
    if missing <= 0:
        return decision
    counts, left = dict(decision.counts), dict(new)
    for _ in range(missing):
        pool = max(left, key=lambda each: left[each])
        counts[pool] -= 1
        left[pool] -= 1
    why = f"{decision.why}; the arbiter denies {missing}"
    return replace(decision, counts=counts, why=why)
