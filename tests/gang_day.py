"""A day of pods on a simulated clock: gangs that arrive, fail to bind, are deleted, and finish."""

import heapq
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from k8s_cases import args, bind_args, book_of, pod, whole_nodes

from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import Binding, begin_binding, end_binding, filter_answer
from agents.devices.k8s.verbs import prioritize_answer as scores_of
from des.devices.presets import simulated

RETRY_S, TRIES = 45.0, 40


@dataclass(slots=True)
class GangDay:
    """Simulation of kube-scheduler's calls for gangs of random sizes.

    ``num_bound`` counts pods, ``num_siblings`` those of gangs of several, ``num_on_promise`` those
    of these that were bound to GPUs promised to the gang before, ``num_failed`` bindings that the
    API server refused. A third of the gangs have pods of different sizes; half of these say so.
    """

    seed: int
    hours: float
    decider: Decider = field(init=False)
    rng: np.random.Generator = field(init=False)
    num_bound: int = 0
    num_siblings: int = 0
    num_on_promise: int = 0
    num_failed: int = 0
    _events: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        nodes = [
            *whole_nodes([f"v{n}" for n in range(6)]),
            *whole_nodes([f"h{n}" for n in range(4)], simulated("dgx-h100")),
        ]
        self.decider = Decider(book=book_of(nodes), gang_timeout_s=120.0)
        self.rng = np.random.default_rng(self.seed)

    def run(self) -> None:
        """Let gangs arrive every 100 s on average, then wait until all have finished."""
        time_s, number = 0.0, 0
        while (time_s := time_s + float(self.rng.exponential(100.0))) < self.hours * 3600.0:
            self._gang(number, time_s)
            number += 1
        last_s = 0.0
        while self._events:
            last_s, _, happen = heapq.heappop(self._events)
            happen(last_s)
            self.check()
        self.decider.book.expire(last_s + self.decider.gang_timeout_s)

    def check(self) -> None:
        """No GPU is held or promised twice."""
        book = self.decider.book
        seen = [(g.node, gpu) for g in book.grants.values() for gpu in g.gpus]
        for promise in book.promises.values():
            seen += [(slot.node, gpu) for slot in promise.slots for gpu in slot.fit.gpus]
        assert len(set(seen)) == len(seen)

    def _at(self, time_s: float, happen: Callable[[float], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (time_s, self._count, happen))

    def _gang(self, number: int, time_s: float) -> None:
        size, gpus = int(self.rng.choice([1, 1, 2, 4, 8])), int(self.rng.choice([1, 2, 4, 8]))
        counts, more = [gpus] * size, {"gang_size": str(size)}
        if self.rng.random() < 1 / 3:
            counts = self.rng.choice([1, 2, 4], size).tolist()
            if self.rng.random() < 1 / 2:
                more["gang_gpus"] = ",".join(map(str, counts))
        lasts_s = float(self.rng.exponential(600.0))
        for rank in range(size):
            if rank and self.rng.random() < 0.05:
                continue  # a sibling that never comes
            uid = f"{number}-{rank}"
            of_pod = pod(uid, counts[rank], gang=f"gang-{number}", **more)
            begin_s = time_s + float(self.rng.uniform(0.0, 90.0))
            self._at(begin_s, lambda now_s, p=of_pod: self._schedule(p, lasts_s, TRIES, now_s))
            if self.rng.random() < 0.03:
                self._at(begin_s + 60.0, lambda _, uid=uid: self.decider.forget(uid))

    def _schedule(self, of_pod: dict, lasts_s: float, tries: int, now_s: float) -> None:
        uid, names = of_pod["metadata"]["uid"], list(self.decider.book.nodes)
        kept = filter_answer(self.decider, args(of_pod, names), now_s)["NodeNames"]
        if kept:
            scores = scores_of(self.decider, args(of_pod, kept), now_s)
            node = max(scores, key=lambda row: row["Score"])["Host"]
            if self._bind(uid, node, now_s):
                self._at(now_s + lasts_s, lambda _: self.decider.forget(uid))
                return
        if tries:
            again = tries - 1
            self._at(now_s + RETRY_S, lambda s: self._schedule(of_pod, lasts_s, again, s))

    def _bind(self, uid: str, node: str, now_s: float) -> bool:
        ask = self.decider.waiting.ask(uid)
        slots = [(slot.node, slot.fit.gpus) for slot in self.decider.book.slots_of(ask)]
        binding = begin_binding(self.decider, bind_args(uid, node), now_s)
        assert isinstance(binding, Binding), binding
        error = "refused" if self.rng.random() < 0.05 else ""
        end_binding(self.decider, binding, error, now_s)
        self.num_failed += bool(error)
        if error:
            return False
        self.num_bound += 1
        if self.decider.waiting.gang_size(ask) > 1:
            self.num_siblings += 1
            self.num_on_promise += (binding.grant.node, binding.grant.gpus) in slots
        return True


if __name__ == "__main__":
    for given in map(int, sys.argv[1:]):
        day = GangDay(seed=given, hours=24.0)
        day.run()
        sys.stdout.write(
            f"seed {given}: {day.num_bound} pods bound, {day.num_siblings} of gangs of several, "
            f"{day.num_on_promise} of them on promised GPUs; {day.num_failed} bindings failed, "
            f"{day.decider.book.num_expired} promises ended in time-out, "
            f"{len(day.decider.book.promises)} left behind\n"
        )
