"""Waiting jobs by shape: a heap for each demand, so that what cannot fit is never looked at."""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush, nsmallest

from des.cluster.live_job import LiveJob

Entry = tuple[float, int, LiveJob]
Shape = tuple[int, str, str, str]


class WaitingQueue:
    """Waiting jobs in the order of their keys, equal ones by number.

    A shape is the demand of a job: its width, level, domain and type of GPU. Jobs of one shape fit
    into the same places, so a decision looks at one of each.
    """

    def __init__(self) -> None:
        self._heaps: dict[Shape, list[Entry]] = {}
        self._shape_of: dict[int, Shape] = {}

    def __len__(self) -> int:
        return len(self._shape_of)

    def push(self, job: LiveJob) -> None:
        """Add a job by its key."""
        value = job.job
        level = f"{value.level}!" if value.is_level_required else value.level
        shape = (job.width, level, value.domain, job.gpu_type)
        self._shape_of[job.number] = shape
        heap = self._heaps.get(shape)
        if heap is None:
            heap = self._heaps[shape] = []
        heappush(heap, (job.key, job.number, job))

    def first(self, without: Iterable[Shape], most_gpus: int) -> LiveJob | None:
        """First job of at most ``most_gpus`` GPUs and of none of some shapes."""
        best: Entry | None = None
        for shape, heap in self._heaps.items():
            is_better = shape[0] <= most_gpus and (best is None or heap[0] < best)
            if is_better and shape not in without:
                best = heap[0]
        return None if best is None else best[2]

    def shape_of(self, job: LiveJob) -> Shape:
        """Shape of a waiting job."""
        return self._shape_of[job.number]

    def remove(self, job: LiveJob) -> None:
        """Remove a job, in no time if it is the first of its shape."""
        shape = self._shape_of.pop(job.number)
        heap = self._heaps[shape]
        if heap[0][1] == job.number:
            heappop(heap)
        else:
            heap[:] = [entry for entry in heap if entry[1] != job.number]
            heapify(heap)
        if not heap:
            del self._heaps[shape]

    def rebuild(self, jobs: Iterable[LiveJob]) -> None:
        """Begin again with some jobs, whose keys and widths may have changed."""
        self._heaps.clear()
        self._shape_of.clear()
        for job in jobs:
            self.push(job)

    def smallest(self, count: int, most_gpus: int) -> list[LiveJob]:
        """First jobs of at most ``most_gpus`` GPUs, in order."""
        entries = (
            entry for shape, heap in self._heaps.items() if shape[0] <= most_gpus for entry in heap
        )
        return [job for _, _, job in nsmallest(count, entries)]
