"""Lists of operations of a program laid out one worker after the other, for packing."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from des.program.actions import COMPUTE, NONE, PASSES, POST, REDUCE, SEND, WAIT, WAIT_TAKEN
from des.program.program import OperationList, Program


class Listed(NamedTuple):
    """Operations of all of some workers, one worker after the other."""

    counts: list[int]
    owners: np.ndarray
    actions: np.ndarray
    ports: np.ndarray
    flows: np.ndarray
    """Flow of each operation on a message, else `NONE`."""
    messages: np.ndarray


def lay_out_lists(
    lists: Sequence[OperationList], flows_of: Sequence[tuple[int, ...]], num_messages: np.ndarray
) -> Listed:
    """Lay out lists, one a worker, whose ports are flows of that many messages each."""
    counts = [len(each.rows) for each in lists]
    owners = np.repeat(np.arange(len(lists)), counts)
    actions, ports, items = np.concatenate([each.rows for each in lists]).T
    flows, messages = np.full((2, len(owners)), NONE)
    moves = np.flatnonzero((actions != COMPUTE) & (actions != REDUCE))
    flows[moves] = of_owners(flows_of, owners[moves], ports[moves])
    is_known = (flows[moves] != NONE) & (items[moves] < num_messages[flows[moves]])
    if not np.all(is_known & (items[moves] >= 0)):
        raise ValueError("program: operations must be on messages of flows, got others")
    first_messages = np.cumsum(num_messages) - num_messages
    messages[moves] = first_messages[flows[moves]] + items[moves]
    return Listed(counts, owners, actions, ports, flows, messages)


def of_owners(
    numbers: Sequence[tuple[int, ...]], owners: np.ndarray, places: np.ndarray
) -> np.ndarray:
    """Entries of lists of numbers, by list and place in it."""
    joined = np.array([number for own in numbers for number in own], np.int64)
    sizes = np.array([len(own) for own in numbers], np.int64)
    if np.any(places >= sizes[owners]):
        raise ValueError("program: ports must be those of the worker, got others")
    found: np.ndarray = joined[(np.cumsum(sizes) - sizes)[owners] + places]
    return found


class Steps(NamedTuple):
    """Steps of workers: notices take the place of posted receives and of messages to be taken.

    ``received`` are flows and the workers that wait for them; ``work`` numbers all passes.
    """

    counts: np.ndarray
    num_passes: np.ndarray
    actions: np.ndarray
    messages: np.ndarray
    work: np.ndarray
    received: tuple[np.ndarray, np.ndarray]


def step_rows(program: Program, num_messages: np.ndarray) -> Steps:
    """Lay out the workers of a program whose messages wait for notices.

    Raises
    ------
    ValueError
        If a worker waits until something has arrived elsewhere, or posts what has no notices.
    """
    workers = program.workers
    lists = [program.operations[worker.operations] for worker in workers]
    listed = lay_out_lists(lists, [worker.flows for worker in workers], num_messages)
    actions, flows, messages = listed.actions.copy(), listed.flows.copy(), listed.messages.copy()
    notices = np.array([flow.notice for flow in program.flows], np.int64)
    at = np.flatnonzero((actions == POST) | (actions == WAIT_TAKEN))
    is_known = np.isin(actions, (COMPUTE, WAIT, SEND, POST, WAIT_TAKEN)).all()
    if not is_known or np.any(notices[flows[at]] == NONE):
        raise ValueError(
            "program: where receives are posted, workers must do passes, sends and waits, and post "
            "receives of messages that have notices, to be packed; got others"
        )
    first = np.cumsum(num_messages) - num_messages
    messages[at] += (first[notices] - first)[flows[at]]
    flows[at] = notices[flows[at]]
    actions[at] = np.where(actions[at] == POST, SEND, WAIT)
    waits, passes = actions == WAIT, actions == COMPUTE
    own = listed.owners[passes]
    stages = of_owners(
        [worker.stages for worker in workers], own, listed.ports[passes] // len(PASSES)
    )
    return Steps(
        np.array(listed.counts),
        np.bincount(own, minlength=len(workers)),
        actions,
        messages,
        len(PASSES) * stages + listed.ports[passes] % len(PASSES),
        (flows[waits], listed.owners[waits]),
    )
