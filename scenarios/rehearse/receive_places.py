"""Places of receives by backend: gloo takes all first, NCCL a bounded number a direction."""

from collections import defaultdict, deque
from collections.abc import Sequence

from scenarios.iteration.reference_operations import RankOperations, RuntimeOperation

BACKENDS = ("gloo", "nccl")
MOST_AHEAD = 4
"""Receives of one sender that are posted before the one that is waited for, under NCCL."""


def connection_of(sender: int, receiver: int, microbatch: int, num_connections: int) -> int:
    """Connection of a message: its direction's, one after the other where there are several.

    Examples
    --------
    >>> [connection_of(0, 1, microbatch, 4) for microbatch in range(3)]
    [0, 1, 0]
    >>> [connection_of(1, 0, microbatch, 4) for microbatch in range(3)]
    [2, 3, 2]
    """
    if num_connections == 1:
        return 0
    half = num_connections // 2
    return (sender > receiver) * half + microbatch % half


def sender_of(one: RuntimeOperation, rank_of_stage: Sequence[int]) -> int:
    """Rank of the stage that sends what an operation receives: activations come from before."""
    return rank_of_stage[one.stage - 1 if one.kind == "F" else one.stage + 1]


def place_receives(
    operations: RankOperations, rank_of_stage: Sequence[int], *, backend: str, num_connections: int
) -> RankOperations:
    """Return the operations of a rank as a backend can run them.

    Under NCCL a send and a receive of one communicator share a stream, so receives that are posted
    early hold up sends, and sends may wait for their receives: a cycle [1]_. A communicator a
    direction has receives alone, or sends alone, at each end; receives that are far ahead are
    posted later, in the same order.

    Raises
    ------
    ValueError
        If connections are neither 1 nor even, or the directions would share a communicator.

    References
    ----------
    .. [1] PyTorch issues 132852, 188833 and 186173; NCCL issues 479 and 783.
    """
    if backend not in BACKENDS:
        raise ValueError(f"runtime: backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if num_connections < 1 or (num_connections > 1 and num_connections % 2):
        raise ValueError(f"runtime: connections must be 1 or even, got {num_connections}")
    if backend == "gloo":
        return operations
    if num_connections == 1:
        raise ValueError(
            "runtime: connections must be at least 2 under nccl, a communicator a direction: sends "
            "to a peer and receives from it share a stream of one, and wait for each other; got 1"
        )
    return _bound(operations, rank_of_stage)


def _bound(operations: RankOperations, rank_of_stage: Sequence[int]) -> RankOperations:
    """Post receives of a sender at most `MOST_AHEAD` before the one that is waited for."""
    unposted: dict[int, deque[RuntimeOperation]] = defaultdict(deque)
    num_ahead: dict[int, int] = defaultdict(int)
    found: list[RuntimeOperation] = []

    def post(sender: int) -> None:
        found.append(unposted[sender].popleft())
        num_ahead[sender] += 1

    for one in operations:
        if one.action not in ("RECV", "WAIT"):
            found.append(one)
            continue
        sender = sender_of(one, rank_of_stage)
        if one.action == "RECV":
            unposted[sender].append(one)
        else:
            while one._replace(action="RECV") in unposted[sender]:
                post(sender)
            found.append(one)
            num_ahead[sender] -= 1
        while unposted[sender] and num_ahead[sender] < MOST_AHEAD:
            post(sender)
    return tuple(found)
