"""Groups of domains from the scores of a pointer: domain after domain, with breaks between."""

import math
from typing import NamedTuple, Self

import numpy as np

from agents.hi_ppo.placement.decode import Facts
from des.base.jit import kernel
from des.compiled.many.layout import Flags, Observations, Small

NUM_PAIRS, NUM_FACTS = 3, 6
"""Scores of a pair: plain, times the share of domains chosen, times the slowest wire of the group.
Facts at a step: the share of domains chosen; of the group, its shares of speed and of needed
memory (at most 1), its slowest wire, whether it is begun; the logarithm of 1 + groups ended."""

FREE = -1
"""Token of a step that is to be chosen."""


class GroupScores(NamedTuple):
    """Pointer scores of one network of K domains.

    Row K is the start of a group; column K stops, column K + 1 ends a group and begins another.
    ``pair`` (3, K + 1, K + 2) scores what comes next by what came last, ``chosen`` (K, K + 2) by
    what the group has, in the mean, ``drift`` (6, K + 2) by the facts.
    """

    pair: Observations
    chosen: Observations
    drift: Observations

    @classmethod
    def zeros(cls, num_domains: int) -> Self:
        """Scores that make all choices allowed equally likely."""
        columns = num_domains + 2
        return cls(
            pair=np.zeros((NUM_PAIRS, num_domains + 1, columns), dtype=np.float32),
            chosen=np.zeros((num_domains, columns), dtype=np.float32),
            drift=np.zeros((NUM_FACTS, columns), dtype=np.float32),
        )


class GroupTrace(NamedTuple):
    """N sequences of at most T steps: what was chosen, and all that each choice depended on.

    ``tokens`` (N, T) are domains, K to stop, K + 1 for a break; ``sizes`` (N,) count the steps, the
    stop among them. ``last`` (N, T) is the row of `GroupScores` before a step, ``came`` (N, T, K)
    says which domains the group has, ``facts`` is (N, T, 6), ``allowed`` (N, T, K + 2).
    ``log_probs`` is (N,).
    """

    tokens: Small
    sizes: Small
    last: Small
    came: Flags
    facts: Observations
    allowed: Flags
    log_probs: Observations

    @classmethod
    def empty(cls, count: int, num_domains: int) -> Self:
        """Sequences to be chosen."""
        steps = 2 * num_domains
        return cls(
            tokens=np.full((count, steps), FREE, dtype=np.int32),
            sizes=np.zeros(count, dtype=np.int32),
            last=np.full((count, steps), num_domains, dtype=np.int32),
            came=np.zeros((count, steps, num_domains), dtype=np.bool_),
            facts=np.zeros((count, steps, NUM_FACTS), dtype=np.float32),
            allowed=np.zeros((count, steps, num_domains + 2), dtype=np.bool_),
            log_probs=np.zeros(count, dtype=np.float32),
        )


@kernel
def decode_groups(
    scores: GroupScores,
    facts: Facts,
    noise: Observations,
    most_stages: int,
    most_groups: int,
    trace: GroupTrace,
) -> None:
    """Fill a trace: steps with a token keep it, `FREE` ones are chosen.

    A choice is that of the largest score plus noise (N, T, K + 2): none gives the likeliest at
    every step, that of Gumbel a sample. A group may end once it holds the model; another may begin
    if the domains left hold it too. To stop is the only choice where nothing else is possible.
    """
    num_domains = facts.speed_share.size
    stop, pause = num_domains, num_domains + 1
    logits = np.empty(num_domains + 2, dtype=np.float32)
    sums = np.empty(num_domains + 2, dtype=np.float32)
    is_used = np.empty(num_domains, dtype=np.bool_)
    for row in range(trace.sizes.size):
        is_used[:] = False
        sums[:] = np.float32(0.0)
        num_used, size, num_groups, last = 0, 0, 0, num_domains
        speed = memory = slowest = np.float32(0.0)
        left = facts.memory_share.sum()
        log_prob = 0.0
        step = 0
        while True:
            known = trace.facts[row, step]
            known[0] = np.float32(num_used / num_domains)
            known[1] = speed
            known[2] = min(memory, np.float32(1.0))
            known[3] = slowest
            known[4] = np.float32(1.0 if size > 0 else 0.0)
            known[5] = np.float32(math.log1p(num_groups))
            trace.last[row, step] = last
            allowed = trace.allowed[row, step]
            num_options = 0
            for option in range(num_domains):
                can = not is_used[option] and size < most_stages
                allowed[option] = can and (size == 0 or facts.can_follow[last, option])
                num_options += allowed[option]
            holds = size > 0 and memory >= np.float32(1.0)
            allowed[stop] = holds or num_options == 0
            allowed[pause] = holds and left >= np.float32(1.0) and num_groups + 1 < most_groups
            token = trace.tokens[row, step]
            most, highest, choice = -math.inf, -math.inf, -1
            for option in range(num_domains + 2):
                if not allowed[option] and option != token:
                    continue
                allowed[option] = True
                logit = scores.pair[0, last, option] + known[0] * scores.pair[1, last, option]
                logit += slowest * scores.pair[2, last, option]
                if size > 0:
                    logit += sums[option] / np.float32(size)
                for fact in range(NUM_FACTS):
                    logit += known[fact] * scores.drift[fact, option]
                logits[option] = logit
                most = max(most, logit)
                if choice < 0 or logit + noise[row, step, option] > highest:
                    choice, highest = option, logit + noise[row, step, option]
            if token != FREE:
                choice = token
            total = 0.0
            for option in range(num_domains + 2):
                if allowed[option]:
                    total += math.exp(logits[option] - most)
            log_prob += logits[choice] - most - math.log(total)
            trace.tokens[row, step] = choice
            step += 1
            if choice == stop:
                break
            if choice == pause:
                size, last = 0, num_domains
                num_groups += 1
                speed = memory = slowest = np.float32(0.0)
                sums[:] = np.float32(0.0)
                trace.came[row, step] = False
                continue
            if size > 0:
                slowest = max(slowest, facts.log_ratio[last, choice])
            speed += facts.speed_share[choice]
            memory += facts.memory_share[choice]
            left -= facts.memory_share[choice]
            for option in range(num_domains + 2):
                sums[option] += scores.chosen[choice, option]
            is_used[choice] = True
            num_used += 1
            size += 1
            last = choice
            trace.came[row, step] = trace.came[row, step - 1]
            trace.came[row, step, choice] = True
        trace.sizes[row] = step
        trace.log_probs[row] = log_prob
