"""N episodes of the scheduling task stepped together."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from agents.decision.families import FAMILIES
from agents.ppo.batch_step import BatchStep
from agents.scheduling.draws import DrawnCourse
from agents.scheduling.plan_maker import REASONS, PlanMaker
from agents.scheduling.setting import KnownPlan, change_figures, steps_s
from agents.scheduling.task import DESCRIBED, FIRST_KNOWN, SchedulingTask
from des import InfeasiblePlacementError, Topology
from des.compiled.many.each import NetworkFigures
from des.compiled.many.layout import Observations, Real, Whole

Actions = npt.NDArray[np.int64]


class SchedulingBatch:
    """Episodes of a task, each with draws of its own.

    Plans that are described or in force, and the costs of changes, are worked out for all
    environments at once in compiled code; those of known plans once a draw.

    Parameters
    ----------
    rngs
        Random numbers of each, from which the draws of its episodes are drawn.

    Attributes
    ----------
    plans
        Plans in force, N.
    """

    def __init__(self, task: SchedulingTask, rngs: Sequence[np.random.Generator]) -> None:
        num_envs = len(rngs)
        self.task, self.num_envs, self.rngs = task, num_envs, list(rngs)
        self._maker = PlanMaker(task.setting)
        self._known_at = {one: place for place, one in enumerate(task.known)}
        self.plans: list[KnownPlan] = [task.start] * num_envs
        self._draws: list[DrawnCourse] = []
        self._epoch: Whole = np.zeros(num_envs, dtype=np.int64)
        self._own_s = np.zeros(num_envs)
        self._changes = np.zeros((2, num_envs, task.action.num_known))

    def reset(self, draw_seeds: Sequence[int] = ()) -> Observations:
        """Begin the next episode everywhere; returns what is seen first, (N, D).

        Parameters
        ----------
        draw_seeds
            Draws of the episodes; none: drawn.
        """
        seeds = list(draw_seeds) or [self.task.draw_seed(rng) for rng in self.rngs]
        self._draws = [self.task.draws.of(seed) for seed in seeds]
        self.plans = [self.task.start] * self.num_envs
        self._epoch[:] = 0
        return self._look(np.arange(self.num_envs))

    def step(self, actions: Actions, *, resets: bool = True) -> BatchStep:
        """Decide an epoch of every environment by actions (N, A), or (N,) of choices, and run it.

        Parameters
        ----------
        resets
            Whether episodes that have ended are followed by the next ones.
        """
        last = self.task.setting.world.num_epochs - 1
        if not self._draws or self._epoch.max() > last:
            raise RuntimeError("scheduling batch: reset must be called first")
        if actions.ndim == 1 and not self.task.action.is_described:
            actions = actions[:, np.newaxis]
        self._check(actions)
        networks = self._now
        choices = self.task.action.choices(actions)
        plans, fallback = self._choose(choices, actions, networks)
        times = self._times(networks, plans)
        changes = self._costs(choices, networks, plans)
        epoch_s = self.task.setting.world.epoch_s
        iterations = (epoch_s - changes[0]) / times
        metrics = {"iteration_s": times, "num_iterations": iterations}
        metrics |= self._metrics(plans, iterations, changes, fallback)
        sent_bytes = metrics["moved_bytes"] + metrics["wan_bytes"]
        rewards = self.task.value(iterations, sent_bytes, epoch_s)
        rewards -= self.task.penalty * (fallback > 0)
        self.plans = plans
        self._epoch += 1
        ended = self._epoch >= self.task.setting.world.num_epochs
        final = observations = self._look(np.arange(self.num_envs))
        if ended.any() and resets:
            observations = final.copy()
            observations[ended] = self._reset_ended(np.flatnonzero(ended))
        return BatchStep(
            observations=observations,
            final_observations=final,
            rewards=rewards.astype(np.float32),
            terminated=np.zeros(self.num_envs, dtype=np.bool_),
            truncated=ended,
            metrics=metrics,
        )

    def _metrics(
        self, plans: Sequence[KnownPlan], iterations: Real, changes: Real, fallback: Whole
    ) -> dict[str, Real]:
        """Figures of the epochs, each (N,); kinds are numbers."""
        step_bytes = np.array([one.wan_bytes for one in plans])
        return {
            "change_s": changes[0],
            "moved_bytes": changes[1],
            "wan_bytes": step_bytes * iterations,
            "family": np.array([float(FAMILIES.index(one.family)) for one in plans]),
            "fallback": fallback.astype(np.float64),
        }

    def close(self) -> None:
        """Forget the episodes."""
        self._draws = []

    def _check(self, actions: Actions) -> None:
        sizes = np.array(self.task.action.sizes)
        shape = (self.num_envs, len(sizes))
        if actions.shape != shape or actions.dtype.kind not in "iu":
            raise ValueError(
                f"scheduling batch: actions must be whole numbers shaped {shape}, "
                f"got {actions.dtype} shaped {actions.shape}"
            )
        outside = (actions < 0) | (actions >= sizes)
        if outside.any():
            row, part = np.argwhere(outside)[0].tolist()
            raise ValueError(
                f"scheduling batch: component {part} of an action must be within "
                f"[0, {sizes[part]}), got {actions[row, part]}"
            )

    def _reset_ended(self, rows: Whole) -> Observations:
        for row in rows.tolist():
            self._draws[row] = self.task.draws.of(self.task.draw_seed(self.rngs[row]))
            self.plans[row] = self.task.start
        self._epoch[rows] = 0
        return self._look(rows)

    def _networks(self, rows: Whole) -> NetworkFigures:
        """Networks of the epochs of some environments."""
        last = self.task.setting.world.num_epochs - 1
        places = [(self._draws[row].networks, min(self._epoch[row], last)) for row in rows.tolist()]
        fields = range(len(NetworkFigures._fields))
        return NetworkFigures(
            *(np.stack([own[field][epoch] for own, epoch in places]) for field in fields)
        )

    def _choose(
        self, choices: Whole, actions: Actions, networks: NetworkFigures
    ) -> tuple[list[KnownPlan], Whole]:
        """Plans that actions lead to, and reasons where it is not theirs, (N,)."""
        plans, fallback = list(self.plans), np.zeros(self.num_envs, dtype=np.int64)
        rows = np.flatnonzero(choices == DESCRIBED)
        if len(rows):
            described = [self.task.action.described(actions[row]) for row in rows.tolist()]
            made = self._maker.made(networks.rows(rows), described)
            made = self._train(rows, made)
            for row, one in zip(rows.tolist(), made, strict=True):
                if isinstance(one, KnownPlan):
                    plans[row] = one
                else:
                    fallback[row] = one
        for row in np.flatnonzero(choices >= FIRST_KNOWN).tolist():
            plans[row] = self.task.known[choices[row] - FIRST_KNOWN]
        return plans, fallback

    def _train(self, rows: Whole, made: Sequence[KnownPlan | int]) -> list[KnownPlan | int]:
        """Plans that were made as the trainer runs them, or the reason why it does not."""
        setting, found = self.task.setting, list(made)
        if setting.trainer.is_ideal:
            return found
        for place, (one, topology) in enumerate(zip(made, self._topologies(rows), strict=True)):
            if isinstance(one, KnownPlan):
                try:
                    found[place] = setting.book.of(setting.bound(topology, one.plan))
                except InfeasiblePlacementError:
                    found[place] = REASONS.index("memory")
                except ValueError:
                    found[place] = REASONS.index("trainer")
        return found

    def _topologies(self, rows: Whole) -> list[Topology]:
        """Networks that some environments are on, for plans that a trainer runs; else none."""
        if self.task.setting.trainer.is_ideal:
            return []
        last = self.task.setting.world.num_epochs - 1
        return [self._draws[row].topologies[min(self._epoch[row], last)] for row in rows.tolist()]

    def _times(self, networks: NetworkFigures, plans: Sequence[KnownPlan]) -> Real:
        """Iterations of the plans in the epochs, (N,)."""
        times = self._own_s.copy()
        rows = self._changed(plans)
        if len(rows):
            own = [plans[row] for row in rows.tolist()]
            times[rows] = self._work_out(rows, networks.rows(rows), own)
        return times

    def _work_out(self, rows: Whole, networks: NetworkFigures, plans: Sequence[KnownPlan]) -> Real:
        """Look iterations of known plans up, and simulate those of unknown plans."""
        found = np.empty(len(plans))
        last = self.task.setting.world.num_epochs - 1
        others = []
        for place, (row, one) in enumerate(zip(rows.tolist(), plans, strict=True)):
            known = self._known_at.get(one)
            if known is None:
                others.append(place)
                continue
            found[place] = self._draws[row].step_s[min(self._epoch[row], last), known]
        if others:
            own = np.array(others)
            new = [plans[place] for place in others]
            topologies = self._topologies(rows[own])
            found[own] = steps_s(self.task.setting, networks.rows(own), new, topologies)
        return found

    def _costs(self, choices: Whole, networks: NetworkFigures, plans: Sequence[KnownPlan]) -> Real:
        """Times [s] and bytes of the changes, (2, N); the first plan is free."""
        costs = np.zeros((2, self.num_envs))
        later = self._epoch > 0
        rows = np.flatnonzero(later & (choices >= FIRST_KNOWN))
        costs[:, rows] = self._changes[:, rows, choices[rows] - FIRST_KNOWN]
        changed = self._changed(plans)
        rows = changed[later[changed] & (choices[changed] == DESCRIBED)]
        if len(rows):
            both = [own[row] for own in (self.plans, plans) for row in rows.tolist()]
            old, new = self._number(both).reshape(2, -1)
            unique = list(dict.fromkeys(both))
            own = networks.rows(rows)
            costs[:, rows] = change_figures(self.task.setting, own, unique, old, new)
        return costs

    def _changed(self, plans: Sequence[KnownPlan]) -> Whole:
        """Environments whose plan is another one than before."""
        pairs = enumerate(zip(plans, self.plans, strict=True))
        return np.array([row for row, (new, old) in pairs if new is not old], dtype=np.int64)

    @staticmethod
    def _number(plans: Sequence[KnownPlan]) -> Whole:
        """Number plans in the order in which they come up."""
        number: dict[KnownPlan, int] = {}
        return np.array([number.setdefault(one, len(number)) for one in plans], dtype=np.int64)

    def _look(self, rows: Whole) -> Observations:
        """Work out what some environments see now; what a keep will take is remembered."""
        task, last = self.task, self.task.setting.world.num_epochs - 1
        networks, plans = self._networks(rows), [self.plans[row] for row in rows.tolist()]
        if len(rows) == self.num_envs:
            self._now = networks
        else:
            for field, own in zip(self._now, networks, strict=True):
                field[rows] = own
        times = self._work_out(rows, networks, plans)
        self._own_s[rows] = times
        num_known, count = task.action.num_known, len(rows)
        epochs = self._epoch[rows]
        at = np.minimum(epochs, last).tolist()
        draws = [self._draws[row] for row in rows.tolist()]
        known_s = np.array([one.step_s[epoch] for one, epoch in zip(draws, at, strict=True)])
        if num_known:
            both = [*task.known, *plans]
            numbers = self._number(both)
            self._changes[:, rows] = change_figures(
                task.setting,
                networks.rows(np.repeat(np.arange(count), num_known)),
                list(dict.fromkeys(both)),
                np.repeat(numbers[num_known:], num_known),
                np.tile(np.arange(num_known), count),
            ).reshape(2, count, num_known)
            self._changes[:, rows[epochs == 0]] = 0.0
        return task.observing.written(
            np.array([one.seen[epoch] for one, epoch in zip(draws, at, strict=True)]),
            plans,
            own_step=np.log(times / task.reference_s),
            known_step=np.log(known_s / times[:, np.newaxis])[:, :num_known],
            change=np.log1p(self._changes[0, rows] / task.setting.world.epoch_s),
            epochs=epochs,
        )
