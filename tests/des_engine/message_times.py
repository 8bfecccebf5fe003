"""Times at which messages of an iteration are made and arrive."""

from collections import defaultdict

from des import IterationResult


def arrived_s(result: IterationResult) -> dict[tuple[int, str, int], float]:
    """When each message was at its target, by stage, kind and microbatch: the end of its way."""
    found: dict[tuple[int, str, int], float] = defaultdict(float)
    for transfer in result.transfers:
        found[transfer[1:4]] = max(found[transfer[1:4]], transfer.arrival_s)
    return found
