"""Deadlocks of a program, found before it runs: its channels are queues, one a pair of workers."""

from collections import defaultdict
from itertools import count

from des.program.actions import POST, SEND, WAIT, WAIT_SENT, WAIT_TAKEN
from des.program.passes import Key, WorkerLists, receivers
from des.program.program import Program
from des.schedules import DeadlockError


def check_receives(program: Program) -> None:
    """Refuse workers that wait for each other, and receives posted in another order than sends.

    Raises
    ------
    ValueError
        If a worker posts receives from another in a different order than that one sends: messages
        match by order alone, so passes would compute with the wrong ones.
    DeadlockError
        If workers wait for each other; the message names what each of them waits for.
    """
    all_lists = WorkerLists.of(program)
    place_of = receivers(program)
    sender_of = {
        own.flow(row): worker
        for worker, own in enumerate(all_lists)
        for row in own.rows
        if row[0] == SEND
    }
    orders: dict[int, dict[tuple[int, int], list[Key]]] = {
        action: defaultdict(list) for action in (SEND, POST)
    }
    for own in all_lists:
        for row in own.rows:
            if row[0] in orders and own.has_notice(row):
                pair = sender_of[own.flow(row)], place_of[own.flow(row)][0]
                orders[row[0]][pair].append(own.key(row))
    for pair, sent in orders[SEND].items():
        _check_order(program, pair, sent, orders[POST][pair])
    blocked = _run(all_lists)
    if blocked:
        raise DeadlockError(
            "program: deadlock, "
            + "; ".join(
                _cycle(program, blocked, sender_of, {f: w for f, (w, _) in place_of.items()})
            )
        )


def _check_order(
    program: Program, pair: tuple[int, int], sent: list[Key], posted: list[Key]
) -> None:
    if sent != posted:
        place = next(each for each in count() if sent[each : each + 1] != posted[each : each + 1])
        found = [
            _describe_message(program, keys[place]) if place < len(keys) else "nothing"
            for keys in (sent, posted)
        ]
        raise ValueError(
            f"program: receives of worker {pair[1]} must be posted in the order in which worker "
            f"{pair[0]} sends, where {found[0]} is next; got {found[1]}"
        )


def _run(all_lists: list[WorkerLists]) -> dict[int, tuple[Key, bool]]:
    """Do all lists without time; messages that workers still wait for, and if they were sent."""
    place, known = [0] * len(all_lists), {SEND: set[Key](), POST: set[Key]()}
    blocked: dict[int, tuple[Key, bool]] = {}
    is_moving = True
    while is_moving:
        is_moving, blocked = False, {}
        for worker, own in enumerate(all_lists):
            for row in own.rows[place[worker] :]:
                if row[0] in known:
                    known[row[0]].add(own.key(row))
                elif row[0] in (WAIT, WAIT_SENT, WAIT_TAKEN):
                    key, is_free = own.key(row), not own.has_notice(row)
                    if key not in known[SEND] or not (is_free or key in known[POST]):
                        blocked[worker] = key, key in known[SEND]
                        break
                place[worker] += 1
                is_moving = True
    return blocked


def _cycle(
    program: Program,
    blocked: dict[int, tuple[Key, bool]],
    sender_of: dict[int, int],
    receiver_of: dict[int, int],
) -> list[str]:
    """Waits of the workers of a cycle, or on the way to a worker that does no more."""
    worker, path = min(blocked), dict[int, str]()
    while worker in blocked and worker not in path:
        (flow, item), is_sent = blocked[worker]
        other = (receiver_of if is_sent else sender_of)[flow]
        path[worker] = (
            f"worker {worker} waits for {_describe_message(program, (flow, item))}, which worker "
            f"{other} has not {'posted' if is_sent else 'sent'}"
        )
        worker = other
    workers = list(path)
    return [path[one] for one in workers[workers.index(worker) if worker in path else 0 :]]


def _describe_message(program: Program, key: Key) -> str:
    """Kind, microbatch and stage of a message."""
    flow = program.flows[key[0]]
    return f"{flow.kind}{flow.label + flow.label_step * key[1]} of stage {flow.stage}"
