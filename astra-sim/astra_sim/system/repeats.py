"""Repeated phases of all NPUs, of which only start and end are simulated.

Where all NPUs of a network of one dimension start the same phase at one tick and nothing else is
under way, what happens until its end depends on the phase and the order of its members alone: all
times are whole nanoseconds from its start on, and every place of the network is like every other.
The first such phase is simulated and its end is kept: how much later, in which order of members.
Members of rings and direct exchanges meet others at fixed distances, so only how the members stand
to the first one matters; those of halving-doubling meet others that depend on their own position.
"""

from typing import Any

from astra_sim.core.events import EventQueue
from astra_sim.files.execution_trace import CollectiveType
from astra_sim.files.network_config import NetworkConfig
from astra_sim.system.phases import PhaseRun

Pattern = tuple[Any, ...]
"""Key of a phase: kind, algorithm, direction, bytes, and the order of its members."""

TURNING = ("ring", "direct")
"""Algorithms whose phases are the same if all members are turned by any number of positions."""

ROUND = (*TURNING, "halvingDoubling")
"""Algorithms that treat all members alike."""


class _Course:
    """Course of a phase from the tick of its first local moves to that of its ends."""

    __slots__ = ("end_ns", "first", "num_events", "order", "pattern", "start_ns", "tag")

    def __init__(
        self, pattern: Pattern, first: PhaseRun, *, start_ns: int, num_events: int
    ) -> None:
        self.pattern = pattern
        self.first = _first_position(first)
        """Position that those of the pattern are counted from."""
        self.tag = first.tag
        self.start_ns = start_ns
        self.end_ns = start_ns
        self.num_events = num_events
        """Events of the queue at the start; at the end those of the phase but its ends."""
        self.order: list[int] = []
        """Positions of members as they end."""


class RepeatedPhases:
    """The courses of all such phases of a run, by their patterns."""

    __slots__ = ("_courses", "_last_ns", "_move_ns", "_queue", "_recorded")

    def __init__(self, queue: EventQueue, *, move_ns: int, last_ns: int) -> None:
        self._queue = queue
        self._move_ns = move_ns
        self._last_ns = last_ns
        self._courses: dict[Pattern, _Course | None] = {}
        """None stands for a phase that does not end at one tick."""
        self._recorded: _Course | None = None

    def join(self, run: PhaseRun) -> None:
        """Count a member that starts a phase now; all of one tick are looked at together."""
        plan = run.phase.plan
        if plan.is_part or plan.algorithm.name not in ROUND or _ends_in_no_time(run):
            return
        queue = self._queue
        queue.gather(queue.now + self._move_ns, self._begin, run)

    def note_end(self, tag: int, position: int) -> None:
        """Note that a member has ended its phase now, if its course is to be kept."""
        course, queue = self._recorded, self._queue
        if course is None:
            return
        if not course.order:
            course.end_ns = queue.now
            num_events = queue.num_events + len(queue.due[queue.now])
            course.num_events = num_events - course.num_events - len(course.pattern[-1])
        if course.end_ns != queue.now or course.tag != tag:
            self._recorded = self._courses[course.pattern] = None
            return
        course.order.append(position)
        if len(course.order) == len(course.pattern[-1]):
            self._courses[course.pattern] = course
            self._recorded = None

    def _begin(self, runs: list[PhaseRun]) -> None:
        """Foresee the end of the phase whose first local moves are due now, or keep its course."""
        queue = self._queue
        self._recorded = None
        pattern = self._pattern(runs) if self._is_alone(runs) else None
        if pattern is None:
            return
        if pattern not in self._courses:
            self._recorded = _Course(
                pattern, runs[0], start_ns=queue.now, num_events=queue.num_events
            )
            return
        course = self._courses[pattern]
        if course is not None:
            self._foresee(course, runs)

    def _is_alone(self, runs: list[PhaseRun]) -> bool:
        """Whether nothing is due but the first local moves of all members, in their order."""
        queue = self._queue
        due = queue.due[queue.now]
        if queue.times or len(due) != len(runs) or len(runs) != len(runs[0].phase.plan.members):
            return False
        return all(
            run.npu.timers.has_alone(event, run.num_moves)
            for event, run in zip(due, runs, strict=True)
        )

    def _pattern(self, runs: list[PhaseRun]) -> Pattern | None:
        """Pattern of a phase; None if its members do not do the same."""
        phases = {
            (run.phase.plan.kind, run.phase.plan.algorithm, run.phase.is_up, run.num_bytes)
            for run in runs
        }
        if len(phases) > 1 or len({run.tag for run in runs}) > 1:
            return None
        first, n = _first_position(runs[0]), len(runs)
        return *phases.pop(), tuple((run.phase.plan.position - first) % n for run in runs)

    def _foresee(self, course: _Course, runs: list[PhaseRun]) -> None:
        """Replace the events that are due by the ends of all members."""
        queue, n = self._queue, len(runs)
        end_ns = queue.now + course.end_ns - course.start_ns
        if end_ns > self._last_ns:
            return
        queue.due[queue.now].clear()
        queue.num_events += course.num_events
        of_position = {run.phase.plan.position: run for run in runs}
        further = _first_position(runs[0]) - course.first
        for position in course.order:
            run = of_position[(position + further) % n]
            run.npu.timers.forget(queue.now)
            queue.insert(end_ns, run.npu.timers.event_of(end_ns, [(run.end_now, None)]))


def _first_position(run: PhaseRun) -> int:
    """Position of the member that starts first, where members may turn; else 0."""
    plan = run.phase.plan
    return plan.position if plan.algorithm.name in TURNING else 0


def _ends_in_no_time(run: PhaseRun) -> bool:
    """Whether a reduction of 0 ns may come last, which joins others that are not counted."""
    plan, settings = run.phase.plan, run.npu.settings
    reduces = plan.kind is CollectiveType.REDUCE_SCATTER or (
        plan.kind is CollectiveType.ALL_REDUCE and plan.algorithm.window is not None
    )
    return reduces and not settings.reduction_ns(run.num_bytes // len(plan.members))


def repeat_phases(
    network: NetworkConfig, queue: EventQueue, *, move_ns: int, last_ns: int
) -> RepeatedPhases | None:
    """Return the store of a run's phases; None where equal phases may take different times.

    Parameters
    ----------
    network
        Must have one dimension, with equal places and bandwidths that never change.
    queue
        Events of the run.
    move_ns
        Time of a local move; it must not be 0.
    last_ns
        Time after which no end is foreseen.
    """
    if len(network.dimensions) > 1 or network.bandwidth_changes or not move_ns:
        return None
    if network.dimensions[0].topology == "Pairwise":
        return None
    return RepeatedPhases(queue, move_ns=move_ns, last_ns=last_ns)
