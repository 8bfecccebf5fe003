"""Orders of domains from the scores of a pointer, one domain after the other, and their plans."""

import math
from typing import NamedTuple

import numpy as np

from des.base.jit import kernel
from des.compiled.many.layout import Flags, Observations, Small
from des.compiled.many.steady import Plans

NUM_PAIRS, NUM_FACTS = 3, 5
"""Scores of a pair: plain, times the share of domains chosen, and times the slowest wire so far.
Facts on what is chosen: its shares of domains, of speed and of needed memory (at most 1), its
slowest wire, and whether there is any."""


class Scores(NamedTuple):
    """Pointer scores of one network of K domains; row K is the start, column K the stop.

    ``pair`` (3, K + 1, K + 1) scores what comes next by what came last, ``chosen`` (K, K + 1) by
    what came at all, in the mean, ``drift`` (5, K + 1) by the facts on it.
    """

    pair: Observations
    chosen: Observations
    drift: Observations


class Facts(NamedTuple):
    """Facts on K domains to choose from: shares of speed and of needed memory, (K,), logarithms
    of wires over forward times and who may follow whom, (K, K)."""

    speed_share: Observations
    memory_share: Observations
    log_ratio: Observations
    can_follow: Flags


@kernel
def decode(
    scores: Scores,
    facts: Facts,
    noise: Observations,
    most_stages: int,
    orders: Small,
    sizes: Small,
    log_probs: Observations,
) -> None:
    """Write orders (N, K), how long they are, and the logarithms of their probabilities, (N,).

    A choice is that of the largest score plus noise (N, K + 1, K + 1), by step and option: none
    gives the likeliest at every step, that of Gumbel a sample. To stop is not allowed before a
    domain is chosen, nor before those chosen hold the model, if any could follow; it is the only
    choice when none can follow any more or the plan is as long as it may be.
    """
    num_domains = facts.speed_share.size
    logits = np.empty(num_domains + 1, dtype=np.float32)
    means = np.empty(num_domains + 1, dtype=np.float32)
    is_used = np.empty(num_domains, dtype=np.bool_)
    for row in range(sizes.size):
        size, last = 0, num_domains
        log_prob = 0.0
        speed = memory = slowest = np.float32(0.0)
        is_used[:] = False
        means[:] = np.float32(0.0)
        while True:
            share = np.float32(size / num_domains)
            held = min(memory, np.float32(1.0))
            is_begun = np.float32(1.0 if size > 0 else 0.0)
            most, total, num_options = -math.inf, 0.0, 0
            for option in range(num_domains):
                logits[option] = -np.inf
                if is_used[option] or size == most_stages:
                    continue
                if size > 0 and not facts.can_follow[last, option]:
                    continue
                num_options += 1
                logits[option] = np.float32(0.0)
            stop = num_domains
            may_stop = num_options == 0 or (size > 0 and memory >= np.float32(1.0))
            logits[stop] = np.float32(0.0) if may_stop else -np.inf
            choice, highest = -1, -math.inf
            for option in range(num_domains + 1):
                if logits[option] < 0.0:
                    continue
                logit = scores.pair[0, last, option] + share * scores.pair[1, last, option]
                logit += slowest * scores.pair[2, last, option]
                if size > 0:
                    logit += means[option] / np.float32(size)
                logit += share * scores.drift[0, option] + speed * scores.drift[1, option]
                logit += held * scores.drift[2, option] + slowest * scores.drift[3, option]
                logit += is_begun * scores.drift[4, option]
                logits[option] = logit
                most = max(most, logit)
                if logit + noise[row, size, option] > highest or choice < 0:
                    choice, highest = option, logit + noise[row, size, option]
            for option in range(num_domains + 1):
                total += math.exp(logits[option] - most)
            log_prob += logits[choice] - most - math.log(total)
            if choice == stop:
                break
            if size > 0:
                slowest = max(slowest, facts.log_ratio[last, choice])
            speed += facts.speed_share[choice]
            memory += facts.memory_share[choice]
            for option in range(num_domains + 1):
                means[option] += scores.chosen[choice, option]
            is_used[choice] = True
            orders[row, size] = choice
            last = choice
            size += 1
        sizes[row] = size
        log_probs[row] = log_prob


class DrawnOrders(NamedTuple):
    """Orders of one network, (N, K), how long they are and how likely they were, (N,)."""

    domains: Small
    sizes: Small
    log_probs: Observations


def decode_orders(
    scores: Scores, facts: Facts, noise: Observations, most_stages: int
) -> DrawnOrders:
    """Decode as many orders as there is noise for, see `agents.hi_ppo.placement.decode.decode`."""
    count, num_domains = len(noise), len(facts.speed_share)
    domains = np.zeros((count, num_domains), dtype=np.int32)
    sizes = np.zeros(count, dtype=np.int32)
    log_probs = np.zeros(count, dtype=np.float32)
    decode(scores, facts, noise, most_stages, domains, sizes, log_probs)
    return DrawnOrders(domains, sizes, log_probs)


def seeded_noise(count: int, num_domains: int, seed: int) -> Observations:
    """Noise of Gumbel that a seed gives, as `draw_noise` of torch's generator; none for the first.

    Both are uniform numbers of 24 bits from the same Mersenne twister.
    """
    twister = np.random.RandomState(seed % 2**32)
    drawn = twister.randint(0, 2**32, (count, num_domains + 1, num_domains + 1), np.uint32)
    uniform = (drawn & 0xFFFFFF).astype(np.float32) / np.float32(2**24)
    uniform = uniform.clip(np.float32(1e-20), np.float32(1.0 - 1e-7))
    noise: Observations = -np.log(-np.log(uniform))
    noise[0] = 0.0
    return noise


def depth_plans(drawn: DrawnOrders, most_stages: int, schedules: range) -> Plans:
    """Plans of orders under some schedules, order by order; layers are not split yet."""
    count, num = len(drawn.sizes), len(schedules)
    domain = np.ascontiguousarray(drawn.domains[:, :most_stages].repeat(num, axis=0))
    return Plans(
        num_stages=drawn.sizes.repeat(num),
        schedule=np.tile(np.array(schedules, dtype=np.int32), count),
        domain=domain,
        end_layer=np.zeros_like(domain),
    )
