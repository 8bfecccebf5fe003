"""Steps of exchanges between domains, as kernels read them."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from des.compiled.many.family_layout import ExchangeScripts
from des.compiled.many.layout import Whole
from des.plan.exchange_steps import exchange_steps, num_parts

Script = tuple[tuple[int, ...], int, bool]
"""Tree of an exchange, empty for a ring, number of members, whether it is half an all-reduce."""


@lru_cache(maxsize=64)
def exchange_scripts(scripts: tuple[Script, ...]) -> ExchangeScripts:
    """Write down the steps of some exchanges one after the other."""
    steps = [exchange_steps(tree, size, is_half=is_half) for tree, size, is_half in scripts]
    members = [own for each in steps for own in each]
    all_steps = list(chain.from_iterable(members))
    waits, ways = [], []
    for each in steps:
        numbered = enumerate(each)
        received = [(one, to) for to, own in numbered for one in own if not one.is_sent]
        waits.append([to for _, to in received])
        ways.append(list(dict.fromkeys((one.other, to) for one, to in received)))
    return ExchangeScripts(
        num_parts=np.array([num_parts(tree, size) for tree, size, _ in scripts]),
        num_messages=np.array([len(one) for one in waits]),
        first_member=_starts(steps),
        first_step=_starts(members),
        message=np.array([one.message for one in all_steps], dtype=np.int64),
        receiver=np.array([one.other if one.is_sent else -1 for one in all_steps], dtype=np.int64),
        first_message=_starts(waits),
        waits=np.array(list(chain.from_iterable(waits)), dtype=np.int64),
        first_way=_starts(ways),
        ways=np.array(list(chain.from_iterable(ways)), dtype=np.int64).reshape(-1, 2),
    )


def _starts(parts: Sequence[Sequence[object]]) -> Whole:
    """Positions at which parts begin, and the end of the last one."""
    return np.cumsum([0, *map(len, parts)])
