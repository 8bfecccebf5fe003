"""Factors by which laws that are drawn in Python have moved links when epochs begin."""

import numpy as np

from agents.flat.kernels.worlds import course_seed, epoch_seed, world_seed
from agents.flat.task import PlacementTask
from agents.flat.worlds import has_course
from des import UniformLaw
from des.compiled.many.layout import Course, Real, Whole
from des.dynamics.law import Path
from des.dynamics.movement import LATEST_START_S, Movement


class LinkFactors:
    """Factors on the links of neighbouring environments.

    Under the uniform law every epoch is drawn alone. Under any other law an episode takes one
    course, see `agents.flat.episode.Episode`; a link is looked up again when its piece has ended.
    """

    def __init__(self, task: PlacementTask, rows: Whole, num_links: int) -> None:
        self._task, self._law = task, task.world.dynamics
        self._first_row = int(rows[0])
        self._paths: dict[int, Path] = {}
        self._end_s = np.zeros((len(rows), num_links))
        self._factors = np.ones((2, len(rows), num_links))

    def begin(self, rows: Whole, course: Course) -> None:
        """Draw the courses of episodes that begin."""
        if not has_course(self._law):
            return
        for row in rows.tolist():
            links = self._task.world.world(int(world_seed(course.seed[row]))).links
            self._paths[row] = self._law.path(links, int(course_seed(course.seed[row])))
        self._end_s[rows - self._first_row] = 0.0

    def at_start(self, rows: Whole, course: Course) -> Real:
        """Factors on bandwidths and on latencies when epochs begin, (2, M, E) of M rows.

        Raises
        ------
        ValueError
            If a trace has ended, or a course has come further than movements may.
        """
        own = rows - self._first_row
        if isinstance(self._law, UniformLaw):
            for row in rows.tolist():
                seed = int(epoch_seed(course.seed[row], course.epoch[row]))
                factors = self._law.factors(self._end_s.shape[1], seed, 0)
                self._factors[:, row - self._first_row] = factors
            return self._factors[:, own]
        starts_s = course.start_s[rows]
        if starts_s.max() > LATEST_START_S:
            Movement(law=self._law, seed=0, start_s=float(starts_s.max()))  # says why
        for at, link in np.argwhere(self._end_s[own] <= starts_s[:, np.newaxis]).tolist():
            piece = self._paths[int(rows[at])].piece_at(link, float(starts_s[at]))
            self._end_s[own[at], link] = piece.end_s
            self._factors[:, own[at], link] = piece.bandwidth_factor, piece.latency_factor
        return self._factors[:, own]
