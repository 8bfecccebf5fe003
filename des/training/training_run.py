"""A training run: many iterations on a moving network, with other jobs and changes of plan.

A process of its own runs above the iterations, whose inside `des.engine.iteration` simulates one
by one. What is simplified:

- The network moves within iterations, but other jobs that come or go count from the next one on.
- An exchange that continues during the next steps (Streaming DiLoCo) waits for earlier ones and
  then has the links to itself: neither do messages of those steps delay it, nor it them.
- A change of plan finds every copy of a layer equal, and no background job on the links.
"""

import math
from collections import deque
from collections.abc import Callable, Generator

import simpy

from des.clock import Clock
from des.costs.feasibility import check_memory
from des.costs.memory import InfeasiblePlacementError
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.learners import require_one_clock
from des.plan.plan import Plan
from des.program.moves import moved_bytes
from des.simulation.migration import migration_s
from des.training.background import Background
from des.training.foresight import drawn_world
from des.training.step_figures import StepFigures, StepSimulator, add_time_to_error
from des.training.training_history import EpochRow, IterationRow, TrainingHistory
from des.training.training_settings import EpochView, Planner, TrainingRun, observed
from des.world.topology import Topology

LONGEST_STALL_S = 7 * 86400.0
"""A week: who waits longer for memory waits for nothing."""


def run_training(
    topology: Topology,
    workload: Workload,
    planner: Plan | Planner,
    run: TrainingRun,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    watch: Callable[[IterationRow], None] | None = None,
) -> TrainingHistory:
    """Simulate a training run.

    An iteration starts as soon as the memory that its plan needs is left by the other jobs;
    until then the training stalls. Steps count from 0 over the whole run, whatever the plans.
    Exchanges that are under way at the end are not waited for.

    Parameters
    ----------
    planner
        Called at the start of every epoch, also while the training stalls; a plan stands for the
        planner that always returns it.
    watch
        Called after every iteration.

    Raises
    ------
    ValueError
        If a plan, the background or the trace of the links does not match the run.
    InfeasiblePlacementError
        If a plan does not fit into the memory even without other jobs, or stalls for
        `LONGEST_STALL_S`.
    UnreachableError
        If a plan sends between domains that no path joins.
    StarvationError
        If something waits for a link that is down for ever.
    """
    decide = (lambda _: planner) if isinstance(planner, Plan) else planner
    training = _Training(
        Clock(), topology, workload, decide, run, corrections=corrections, watch=watch
    )
    return training.history()


class _Epoch:
    """An epoch while it lasts."""

    def __init__(self, number: int, start_s: float, plan: Plan) -> None:
        self.number, self.start_s, self.plan = number, start_s, plan
        self.moved_bytes = self.drain_s = self.migration_s = self.stall_s = 0.0
        self.num_iterations = 0

    def row(self) -> EpochRow:
        return EpochRow(
            epoch=self.number,
            start_s=self.start_s,
            plan=self.plan,
            moved_bytes=self.moved_bytes,
            drain_s=self.drain_s,
            migration_s=self.migration_s,
            stall_s=self.stall_s,
            num_iterations=self.num_iterations,
        )


class _Training:
    """The process of a run and what it leaves behind."""

    def __init__(
        self,
        clock: Clock,
        topology: Topology,
        workload: Workload,
        planner: Planner,
        run: TrainingRun,
        *,
        corrections: Corrections,
        watch: Callable[[IterationRow], None] | None,
    ) -> None:
        self._topology, self._workload, self._planner = topology, workload, planner
        self._run, self._corrections, self._watch = run, corrections, watch
        self._clock = clock
        self._background = Background(clock, topology, run.background, run.seed)
        self._steps = StepSimulator(workload, corrections)
        self._steps.enter(drawn_world(topology, run.seed, 0))
        self._epochs: list[_Epoch] = []
        self._num_samples_seen = 0
        self._iterations: list[IterationRow] = []
        self._under_way: deque[tuple[int, float]] = deque()
        self._stalled_s = 0.0

    def history(self) -> TrainingHistory:
        """Run to the end and sum up."""
        self._clock.run(until=self._clock.process(self._train()))
        return TrainingHistory(
            domains=tuple(self._topology.index_of),
            total_s=self._clock.now,
            iterations=tuple(self._iterations),
            epochs=tuple(epoch.row() for epoch in self._epochs),
            loads=tuple(self._background.samples),
        )

    def _train(self) -> Generator[simpy.Event, None, None]:
        """Decide at every border of epochs; between them iterate, or wait for memory."""
        while not self._is_over():
            epoch = self._run.epoch_at(self._clock.now)
            if not self._epochs or epoch > self._epochs[-1].number:
                yield from self._begin(epoch)
            now_s, plan, step = self._clock.now, self._epochs[-1].plan, len(self._iterations)
            figures = self._steps.iteration(plan, self._background.loads, step, now_s)
            if figures.misfit is None:
                yield from self._iterate(figures)
            else:
                yield from self._stall(figures.misfit)

    def _is_over(self) -> bool:
        if self._run.num_epochs is not None:
            return self._run.epoch_at(self._clock.now) >= self._run.num_epochs
        return len(self._iterations) == self._run.num_iterations

    def _begin(self, number: int) -> Generator[simpy.Event, None, None]:
        """Let the planner see the world; if it changes the plan, pay for that."""
        if number > 0 and self._steps.world.movement is None:
            self._steps.enter(drawn_world(self._topology, self._run.seed, number))
        now_s, samples = self._clock.now, self._background.samples
        old = self._epochs[-1].plan if self._epochs else None
        view = EpochView(
            epoch=number,
            time_s=now_s,
            topology=observed(self._steps.world.later(now_s)),
            loads=self._background.loads,
            load_changes=tuple(samples[self._num_samples_seen :]),
            plan=old,
            num_iterations=len(self._iterations),
        )
        self._num_samples_seen = len(samples)
        plan = self._planner(view)
        epoch = _Epoch(number, now_s, plan)
        if plan != old:
            plan.check_against(self._topology, self._workload)
            require_one_clock("training run", plan)
            check_memory(self._topology, self._workload, plan)
        self._epochs.append(epoch)
        if old is not None and plan != old:
            yield from self._change(epoch, old)

    def _change(self, epoch: _Epoch, old: Plan) -> Generator[simpy.Event, None, None]:
        """Wait for exchanges under way, move the model state and start again."""
        if self._under_way and self._under_way[-1][1] > self._clock.now:
            yield self._clock.at(self._under_way[-1][1])
        now_s = self._clock.now
        epoch.drain_s = now_s - epoch.start_s
        if self._run.pays_bytes:
            epoch.moved_bytes = sum(moved_bytes(self._workload, old, epoch.plan).values())
        with add_time_to_error(now_s):
            epoch.migration_s = migration_s(
                self._steps.world.later(now_s),
                self._workload,
                old,
                epoch.plan,
                restart_s=self._run.restart_s,
                pays_bytes=self._run.pays_bytes,
                corrections=self._corrections,
            )
        yield self._clock.at(now_s + epoch.migration_s)

    def _stall(self, misfit: str) -> Generator[simpy.Event, None, None]:
        """Wait until other jobs change or the next epoch starts."""
        start_s, epoch = self._clock.now, self._epochs[-1]
        if self._stalled_s >= LONGEST_STALL_S or not any(
            load.memory_occupancy for load in self._background.loads
        ):
            raise InfeasiblePlacementError(
                f"training run: plan has stalled for {self._stalled_s:g} s at {start_s:g} s: "
                f"{misfit}"
            )
        wake = self._background.next_change()
        if self._run.epoch_s < math.inf:
            border_s = (self._run.epoch_at(start_s) + 1) * self._run.epoch_s
            wake |= self._clock.at(border_s)
        yield wake
        epoch.stall_s += self._clock.now - start_s
        self._stalled_s += self._clock.now - start_s

    def _iterate(self, figures: StepFigures) -> Generator[simpy.Event, None, None]:
        """Do a step, start what is due after it, and wait for what must have arrived by then."""
        start_s, epoch, step = self._clock.now, self._epochs[-1], len(self._iterations)
        yield self._clock.at(start_s + figures.duration_s)
        num_bytes = figures.num_bytes + self._exchange(epoch.plan, step)
        waited_s = 0.0
        while self._under_way and self._due_by(step):
            arrival_s = self._under_way.popleft()[1]
            if arrival_s > self._clock.now:
                waited_s += arrival_s - self._clock.now
                yield self._clock.at(arrival_s)
        duration_s = figures.duration_s + waited_s
        row = IterationRow(
            iteration=step,
            epoch=epoch.number,
            start_s=start_s,
            duration_s=duration_s,
            exposed_exchange_s=figures.exposed_exchange_s + waited_s,
            num_bytes=num_bytes,
            utilisation=figures.utilisation * (figures.duration_s / duration_s),
        )
        self._iterations.append(row)
        epoch.num_iterations += 1
        self._stalled_s = 0.0
        if self._watch is not None:
            self._watch(row)

    def _exchange(self, plan: Plan, step: int) -> float:
        """Start the exchange that runs during the next steps, if one is due; returns its bytes."""
        start_s = self._clock.now
        if self._under_way:
            start_s = max(start_s, self._under_way[-1][1])
        exchange = self._steps.exchange(plan, step, start_s)
        if exchange is None:
            return 0.0
        self._under_way.append((step, start_s + exchange.duration_s))
        return exchange.num_bytes

    def _due_by(self, step: int) -> bool:
        """Whether the oldest exchange under way must have arrived by the end of a step."""
        synchronisation = self._epochs[-1].plan.synchronisation
        return self._under_way[0][0] + synchronisation.overlap_steps <= step
