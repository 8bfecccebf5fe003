"""Cases that the commands run, and what they print."""

import re

from astra_traces import ALL_REDUCE, Case, collective, compute, network_file, receive, send

ALL_REDUCES = Case(ranks=[[collective(0, ALL_REDUCE, 2**20)]] * 4)
PAIR = Case(network=network_file(npus=2), ranks=[[send(0, 1, 2**20, 5)], [receive(0, 0, 2**20, 5)]])
ZERO_BYTES_AT_LAST = PAIR.changed(ranks=[[compute(0, 4), send(1, 1, 0, 5, [0])], [compute(0, 3)]])


def finished(text):
    """Finishing times by rank."""
    return {
        int(rank): int(cycles) for rank, cycles in re.findall(r"sys\[(\d+)\] finished, (\d+)", text)
    }
