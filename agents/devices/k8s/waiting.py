"""Pods without a node: their demands by UID, and by gang, from calls or from the API server."""

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from des.devices.k8s.pods import GangKey, PodAsk

MOST_PODS = 100_000
"""Pods that are remembered; the one seen longest ago is dropped first."""


@dataclass(slots=True, kw_only=True)
class WaitingPods:
    """Demands of pods until they are gone: a bind call names its pod alone.

    Pods that a call was about count as waiting siblings for a time, as calls do not tell that a pod
    was deleted; pods that the API server lists count until it says that they are gone.

    Attributes
    ----------
    sibling_timeout_s
        Time for which a pod of a call counts as a waiting sibling. [s]
    gang_sizes
        Pods of gangs as their objects say it (PodGroup, Workload), by namespace and name.
    """

    sibling_timeout_s: float
    gang_sizes: dict[GangKey, int] = field(default_factory=dict)
    _asks: OrderedDict[str, PodAsk] = field(default_factory=OrderedDict)
    _of_gang: dict[GangKey, dict[str, float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._asks)

    def __iter__(self) -> Iterator[str]:
        return iter(self._asks)

    def ask(self, uid: str) -> PodAsk | None:
        """Demand of a pod; None of one that was not seen."""
        return self._asks.get(uid)

    def enter(self, ask: PodAsk, seen_s: float) -> None:
        """Remember a pod that a call at a time is about."""
        if not ask.uid:
            return
        before = self._asks.get(ask.uid)
        last_s = -math.inf
        if before is not None and before.gang_key is not None:
            last_s = self._of_gang.get(before.gang_key, {}).get(ask.uid, last_s)
            if before.gang_key != ask.gang_key:
                self.settle(ask.uid)
        self._asks[ask.uid] = ask
        self._asks.move_to_end(ask.uid)
        if ask.gang_key is not None:
            self._of_gang.setdefault(ask.gang_key, {})[ask.uid] = max(seen_s, last_s)
        if len(self._asks) > MOST_PODS:
            self.forget(next(iter(self._asks)))

    def enter_listed(self, ask: PodAsk) -> None:
        """Remember a pod that the API server lists as one without a node."""
        self.enter(ask, math.inf)

    def settle(self, uid: str) -> None:
        """Take a pod out of its gang's waiting ones: it has a node."""
        ask = self._asks.get(uid)
        if ask is None or ask.gang_key is None:
            return
        rest = self._of_gang.get(ask.gang_key, {})
        rest.pop(uid, None)
        if not rest:
            self._of_gang.pop(ask.gang_key, None)

    def forget(self, uid: str) -> None:
        """Drop a pod that is gone."""
        self.settle(uid)
        self._asks.pop(uid, None)

    def keep_listed(self, uids: Iterable[str]) -> None:
        """Drop the pods that the API server listed once and does not any more."""
        known = set(uids)
        seen = [pair for rows in self._of_gang.values() for pair in rows.items()]
        for uid, seen_s in seen:
            if seen_s == math.inf and uid not in known:
                self.forget(uid)

    def has_pods(self, gang: GangKey) -> bool:
        """Tell whether any pod of a gang waits."""
        return gang in self._of_gang

    def siblings(self, ask: PodAsk, now_s: float) -> list[PodAsk]:
        """Waiting pods of a pod's gang without itself, in the order in which they came."""
        if ask.gang_key is None:
            return []
        rows = self._of_gang.get(ask.gang_key, {})
        return [
            self._asks[uid]
            for uid, seen_s in rows.items()
            if uid != ask.uid and seen_s + self.sibling_timeout_s > now_s
        ]

    def gang_size(self, ask: PodAsk) -> int:
        """Pods of a pod's gang, as it says or as an object says; 1 where nothing does.

        Replicas of a pod group of a Workload have the size of the group.
        """
        if ask.gang_key is None or ask.gang_size is not None:
            return ask.gang_size or 1
        namespace, name = ask.gang_key
        group = "/".join(name.split("/")[:2])
        return self.gang_sizes.get((namespace, name)) or self.gang_sizes.get((namespace, group), 1)
