"""Simulation of replicas with block memory: routing, batches, pipeline stages."""

from collections import deque
from collections.abc import Callable

from des.clock import Clock
from des.serving.requests import Request
from scenarios.reproduce.serving_oracles.block_batches import (
    NEXT_BATCH,
    Batch,
    BlockHistory,
    BlockQueues,
    BlockRequest,
    BlockWorld,
)
from scenarios.reproduce.serving_oracles.courses import call_at, simulate_arrivals

_NUM_FIRST = 200
"""Batches that a history keeps."""


def run_blocks(world: BlockWorld) -> BlockHistory:
    """Simulate until every request is finished or nothing can happen any more."""
    service = _Service(world)
    simulate_arrivals(service.clock, world.requests, service.arrive)
    return service.history()


class _Service:
    def __init__(self, world: BlockWorld) -> None:
        self.world = world
        self.clock = Clock()
        self.requests: list[BlockRequest] = []
        self.replicas = [_Replica(self, number) for number in range(world.num_replicas)]
        self.num_batches = self.executed_tokens = self.num_routed = 0
        self.first: list[tuple[float, tuple[tuple[int, int], ...]]] = []

    def soon(self, action: Callable[[], None], after_s: float = 0.0) -> None:
        """Create an event."""
        call_at(self.clock, self.clock.now + after_s, action)

    def arrive(self, request: Request) -> None:
        """Create the routing of a request that comes."""
        one = BlockRequest(request)
        self.requests.append(one)
        self.soon(lambda: self.route(one))

    def route(self, one: BlockRequest) -> None:
        """Put a request at the end of a replica's queue."""
        if self.world.router == "round_robin":
            replica = self.replicas[self.num_routed % len(self.replicas)]
        else:
            replica = min(self.replicas, key=lambda each: len(each.queues.queue))
        self.num_routed += 1
        one.replica = replica.number
        replica.queues.queue.append(one)
        self.soon(replica.form)

    def count(self, batch: Batch, time_s: float) -> None:
        """Count a batch that enters a pipeline."""
        self.num_batches += 1
        self.executed_tokens += sum(num for _, num in batch)
        if len(self.first) < _NUM_FIRST:
            parts = tuple((one.request.request_id, num) for one, num in batch)
            self.first.append((time_s, parts))

    def history(self) -> BlockHistory:
        """Collect requests and counts."""
        return BlockHistory(
            requests=tuple(self.requests),
            num_batches=self.num_batches,
            executed_tokens=self.executed_tokens,
            first_batches=tuple(self.first),
        )


class _Replica:
    def __init__(self, service: _Service, number: int) -> None:
        self.service = service
        self.number = number
        self.settings = service.world.settings
        self.queues = BlockQueues(settings=self.settings)
        self.next_batch = NEXT_BATCH[self.settings.batching]
        self.num_out = 0
        self.stage_queues: list[deque[Batch]] = [
            deque() for _ in range(self.settings.pipeline_stages)
        ]
        self.is_busy = [False] * self.settings.pipeline_stages

    def form(self) -> None:
        """Make batches while fewer are out than the pipeline has stages."""
        made = []
        now = self.service.clock.now
        while self.num_out < self.settings.pipeline_stages:
            batch = self.next_batch(self.queues)
            if not batch:
                break
            self.num_out += 1
            for one, _ in batch:
                if one.start_s is None:
                    one.start_s = now
            made.append(batch)
        for batch in made:
            self.service.soon(lambda batch=batch: self.enter(0, batch))  # type: ignore[misc]

    def enter(self, stage: int, batch: Batch) -> None:
        """Let a batch wait for a stage."""
        self.stage_queues[stage].append(batch)
        self.service.soon(lambda: self.start(stage))

    def start(self, stage: int) -> None:
        """Run the next batch if the stage is free."""
        if self.is_busy[stage] or not self.stage_queues[stage]:
            return
        self.is_busy[stage] = True
        batch = self.stage_queues[stage].popleft()
        time_s = self.service.world.times.iteration_s([(num, one.done) for one, num in batch])
        if stage == 0:
            self.service.count(batch, time_s)
        self.service.soon(lambda: self.leave(stage, batch), time_s)

    def leave(self, stage: int, batch: Batch) -> None:
        """Free the stage; the batch goes to the next one or ends."""
        self.is_busy[stage] = False
        self.service.soon(lambda: self.start(stage))
        if stage + 1 < self.settings.pipeline_stages:
            self.service.soon(lambda: self.enter(stage + 1, batch))
        else:
            self.service.soon(lambda: self.end(batch))

    def end(self, batch: Batch) -> None:
        """Advance the requests of a batch; finished ones free their blocks."""
        now = self.service.clock.now
        for one, num in batch:
            one.advance(num, now)
        left = [one for one, _ in batch if one.end_s is None]
        if self.settings.batching == "faster_transformer":
            if left:
                self.queues.back_batches.append(left)
            frees = not left or not self.settings.keeps_early_blocks
        else:
            self.queues.back.extend(left)
            frees = True
        if frees:
            for one, _ in batch:
                if one.end_s is not None:
                    self.queues.release(one)
        self.num_out -= 1
        self.service.soon(self.form)
