"""A collective is cut into chunks, which pass through phases and queues on their own."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from astra_sim.base.lazy import lazy
from astra_sim.system.exchanges import (
    DirectExchange,
    Exchange,
    HalvingDoublingExchange,
)
from astra_sim.system.npu import Npu
from astra_sim.system.phases import Phase, PhaseRun
from astra_sim.system.repeats import RepeatedPhases
from astra_sim.system.rings import RingStart

if TYPE_CHECKING:
    from astra_sim.system import trees
else:
    trees = lazy("astra_sim.system.trees")


def _tree_reduction(run: PhaseRun) -> "trees.TreeReduction":
    """Load the module of trees only where there are any."""
    return trees.TreeReduction(run)


ALGORITHMS: dict[str, Callable[[PhaseRun], "Exchange | RingStart | trees.TreeReduction"]] = {
    "ring": RingStart,
    "direct": DirectExchange,
    "halvingDoubling": HalvingDoublingExchange,
    "doubleBinaryTree": _tree_reduction,
}


class CollectiveRun:
    """A collective of one NPU under way: ``done(argument)`` once all its chunks are."""

    __slots__ = ("_argument", "_done", "chunks_left")

    def __init__(self, num_chunks: int, done: Callable[[Any], None], argument: Any) -> None:
        self.chunks_left = num_chunks
        self._done = done
        self._argument = argument

    def count_chunk(self) -> None:
        """One chunk has gone through all its phases."""
        self.chunks_left -= 1
        if not self.chunks_left:
            self._done(self._argument)


class Chunk:
    """A chunk of one NPU: its data, its phases and where it is among them."""

    __slots__ = (
        "_collective",
        "_npu",
        "_num_bytes",
        "_phase_index",
        "_phases",
        "_repeats",
        "_tag",
    )

    def __init__(
        self,
        npu: Npu,
        collective: CollectiveRun,
        *,
        tag: int,
        num_bytes: int,
        phases: tuple[Phase, ...],
        repeats: RepeatedPhases | None,
    ) -> None:
        self._npu = npu
        self._collective = collective
        self._tag = tag
        self._num_bytes = num_bytes
        self._phases = phases
        self._repeats = repeats
        self._phase_index = 0

    def enter_queue(self) -> None:
        """Join the queue of the present phase, which starts it if there is room."""
        queue = self._phases[self._phase_index].queue
        queue.waiting.append(self._start_phase)
        queue.start_waiting()

    def _start_phase(self) -> None:
        phase = self._phases[self._phase_index]
        run = PhaseRun(self._npu, phase, self._tag, self._num_bytes, self._end_phase)
        exchange = ALGORITHMS[phase.plan.algorithm.name](run)
        if self._repeats is not None:
            self._repeats.join(run)
        exchange.start()

    def _end_phase(self) -> None:
        """End the phase: count, leave the queue, join the next, start what waits in both."""
        phase = self._phases[self._phase_index]
        if self._repeats is not None:
            self._repeats.note_end(self._tag, phase.plan.position)
        self._phase_index += 1
        if self._phase_index == len(self._phases):
            self._collective.count_chunk()
            phase.queue.running -= 1
            phase.queue.start_waiting()
            return
        self._num_bytes = phase.plan.pass_on(self._num_bytes)
        phase.queue.running -= 1
        following = self._phases[self._phase_index].queue
        following.waiting.append(self._start_phase)
        phase.queue.start_waiting()
        following.start_waiting()
