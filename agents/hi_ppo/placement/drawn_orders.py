"""Orders of domains drawn by scores and noise, and the plans of them."""

from typing import NamedTuple

import numpy as np

from agents.hi_ppo.placement.decode import Facts, Scores, decode
from des.compiled.many.layout import Observations, Small
from des.compiled.many.steady import Plans


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
    """Noise of Gumbel that a seed gives, as `drawn_noise` of torch's generator; none for the first.

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
