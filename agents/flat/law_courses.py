"""Courses that the links of neighbouring environments take by any law, worked out as requested."""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heapreplace

import numpy as np

from agents.flat.kernels.pieces import draw_starts, drop_past
from agents.flat.kernels.seeds import course_seed, epoch_seed, world_seed
from agents.flat.task import PlacementTask
from agents.flat.worlds import has_course
from des.compiled.many.layout import Course, CoursePieces, Flags, Real, Whole
from des.dynamics.law import Path, Piece
from des.dynamics.movement import LATEST_START_S, Movement

_LEAST_ROOM = 4
"""Pieces of each link that there is room for at first."""


class LawCourses:
    """Courses of the links of rows next to each other, each from where its epoch begins.

    Under the uniform law every epoch takes a course of its own, from time 0 on. Under any other
    law an episode takes one course, see `agents.flat.episode.Episode`.
    """

    def __init__(self, task: PlacementTask, rows: Whole, num_links: int) -> None:
        self._task, self._law = task, task.world.dynamics
        self.is_of_episodes = has_course(self._law)
        self._paths: list[Path | None] = [None] * len(rows)
        shape, room = (len(rows), num_links), len(rows) * num_links * _LEAST_ROOM
        first = _LEAST_ROOM * np.arange(len(rows) * num_links).reshape(shape)
        self._end_of_room: Whole = first + _LEAST_ROOM
        self._room_taken = room
        self.pieces = CoursePieces(
            int(rows[0]), first, np.zeros(shape, np.int64), *np.zeros((3, room))
        )
        self._spent = np.zeros((len(rows) * num_links, 2), np.int64)

    @property
    def num_bytes(self) -> int:
        """Memory of the pieces. [bytes]"""
        return sum(one.nbytes for one in self.pieces if isinstance(one, np.ndarray))

    def begin(self, rows: Whole, course: Course) -> None:
        """Draw the courses of episodes that begin."""
        if self.is_of_episodes:
            for row in rows.tolist():
                self._draw(row, course, int(course_seed(course.seed[row])))

    def begin_epochs(self, rows: Whole, course: Course) -> None:
        """Write down the links as they are when epochs begin.

        Raises
        ------
        ValueError
            If a trace has ended, or a course has come further than movements may.
        """
        for row in rows.tolist():
            if not self.is_of_episodes:
                self._draw(row, course, int(epoch_seed(course.seed[row], course.epoch[row])))
            elif course.start_s[row] > LATEST_START_S:
                Movement(law=self._law, seed=0, start_s=float(course.start_s[row]))  # says why
        num_spent = drop_past(self.pieces, course, rows, self._spent)
        for row, link in self._spent[:num_spent].tolist():
            self._add(
                row - self.pieces.first_row, link, self._piece(row, link, course.start_s[row])
            )
        draw_starts(self.pieces, course, rows)

    def extend(self, row: int, links: Iterable[int], until_s: float) -> bool:
        """Work out the courses of links to some time, or to where a trace ends before.

        Returns whether anything is known that was not.
        """
        own, grew = row - self.pieces.first_row, False
        ends = [(self.end_s(row, link), link) for link in links]
        heapify(ends)
        while ends and ends[0][0] <= until_s:  # in order of time: paths keep what is near
            end_s, link = ends[0]
            try:
                piece = self._piece(row, link, end_s)
            except ValueError:  # a trace has ended; who needs more of it is told so there
                heappop(ends)
                continue
            self._add(own, link, piece)
            heapreplace(ends, (piece.end_s, link))
            grew = True
        return grew

    def extend_all(self, rows: Whole, is_used: Flags, until_s: Real) -> None:
        """Work out the courses of the links in use to some time each, both by own row."""
        own = rows - self.pieces.first_row
        last = (self.pieces.first + self.pieces.num_pieces - 1)[own]
        is_short = is_used[own] & (self.pieces.end_s[last] <= until_s[own, np.newaxis])
        for at in np.flatnonzero(is_short.any(axis=1)).tolist():
            links = np.flatnonzero(is_short[at]).tolist()
            self.extend(int(rows[at]), links, float(until_s[own[at]]))

    def end_s(self, row: int, link: int) -> float:
        """Time of the course until which it is known. [s]"""
        own = row - self.pieces.first_row
        return float(
            self.pieces.end_s[self.pieces.first[own, link] + self.pieces.num_pieces[own, link] - 1]
        )

    def last_border_s(self, row: int, link: int) -> float:
        """Time at which the last known piece begins, 0 where it has begun with the epoch. [s]"""
        own = row - self.pieces.first_row
        if self.pieces.num_pieces[own, link] < 2:
            return 0.0
        return float(
            self.pieces.end_s[self.pieces.first[own, link] + self.pieces.num_pieces[own, link] - 2]
        )

    def _draw(self, row: int, course: Course, seed: int) -> None:
        own, world = row - self.pieces.first_row, self._task.world
        links = world.world(int(world_seed(course.seed[row]))).links
        self._paths[own] = self._law.path(links, seed)
        self.pieces.num_pieces[own] = 0

    def _piece(self, row: int, link: int, time_s: float) -> Piece:
        path = self._paths[row - self.pieces.first_row]
        assert path is not None, "an episode has begun"
        return path.piece_at(link, float(time_s))

    def _add(self, own: int, link: int, piece: Piece) -> None:
        at = int(self.pieces.first[own, link] + self.pieces.num_pieces[own, link])
        if at == self._end_of_room[own, link]:
            at = self._move(own, link)
        pieces = self.pieces
        pieces.end_s[at] = piece.end_s
        pieces.bandwidth_factor[at] = piece.bandwidth_factor
        pieces.latency_factor[at] = piece.latency_factor
        pieces.num_pieces[own, link] += 1

    def _move(self, own: int, link: int) -> int:
        """Give a link more room, behind all others; returns where its next piece goes."""
        count = int(self.pieces.num_pieces[own, link])
        room = max(_LEAST_ROOM, 2 * count)
        if self._room_taken + room > len(self.pieces.end_s):
            self._pack(room)
        first, to = int(self.pieces.first[own, link]), self._room_taken
        for values in _columns(self.pieces):
            values[to : to + count] = values[first : first + count]
        self.pieces.first[own, link] = to
        self._end_of_room[own, link] = to + room
        self._room_taken += room
        return to + count

    def _pack(self, room: int) -> None:
        """Move all pieces together, with room for as many again and for some more."""
        first, count = self.pieces.first, self.pieces.num_pieces
        rooms = np.maximum(_LEAST_ROOM, count)
        ends = np.cumsum(rooms).reshape(rooms.shape)
        starts = ends - rooms
        num = count.ravel()
        within = np.arange(num.sum()) - np.repeat(np.cumsum(num) - num, num)
        here = np.repeat(first.ravel(), num) + within
        there = np.repeat(starts.ravel(), num) + within
        self._room_taken = int(rooms.sum())
        new = np.zeros((3, 2 * (self._room_taken + room)))
        for values, old in zip(new, _columns(self.pieces), strict=True):
            values[there] = old[here]
        first[:] = starts
        self._end_of_room = ends
        self.pieces = self.pieces._replace(
            end_s=new[0], bandwidth_factor=new[1], latency_factor=new[2]
        )


def _columns(pieces: CoursePieces) -> Sequence[Real]:
    return pieces.end_s, pieces.bandwidth_factor, pieces.latency_factor
