"""Worlds of episodes and epochs: seeds, links and courses; the twin of `agents.flat.worlds`."""

import numpy as np

from des.base.arithmetic import goodput
from des.base.jit import kernel
from des.base.random_numbers import derive_seed, uniform_pair
from des.base.scalar import scalar
from des.compiled.many.layout import Course, Figures, Links, Observations, Real, Runs, Small, Whole
from des.dynamics.uniform_course import uniform_factors


@kernel
def episode_seed(batch_seed: int, position: int, number: int) -> np.int64:
    """Seed of an episode, the first of which is number 0, of an environment of a batch."""
    return derive_seed(int(derive_seed(batch_seed, position, 0)), number, 0)


@kernel
def world_seed(episode_seed: int) -> np.int64:
    """Seed of an episode's base world."""
    return derive_seed(episode_seed, 0, 0)


@kernel
def course_seed(episode_seed: int) -> np.int64:
    """Seed of the one course that the links take through an episode."""
    return derive_seed(episode_seed, 0, 1)


@kernel
def epoch_seed(episode_seed: int, epoch: int) -> np.int64:
    """Seed of how the links move in an epoch, counted from 0."""
    return derive_seed(episode_seed, 1 + epoch, 0)


@kernel
def begin_episodes(course: Course, batch_seed: int, uniform: Runs, rows: Whole) -> None:
    """Let the next episodes begin, with the uniform placement; links are not drawn yet."""
    numbers, epochs, seeds = course.number, course.epoch, course.seed
    stage_count, domains, end_layers = (
        course.last.num_stages,
        course.last.domain,
        course.last.end_layer,
    )
    num_stages = uniform.num_stages[0]
    for row in rows:
        numbers[row] += 1
        epochs[row] = 0
        seeds[row] = episode_seed(batch_seed, row, numbers[row])
        stage_count[row] = num_stages
        for stage in range(num_stages):
            domains[row, stage] = uniform.domain[0, stage]
            end_layers[row, stage] = uniform.end_layer[0, stage]


@kernel
def begin_courses(course: Course, placed: Runs, rows: Whole) -> None:
    """Let the next epochs begin, with the new placements; links are not drawn yet."""
    epochs = course.epoch
    stage_count, domains, end_layers = (
        course.last.num_stages,
        course.last.domain,
        course.last.end_layer,
    )
    new_count, new_domains, new_end_layers = placed
    for row in rows:
        epochs[row] += 1
        num_stages = new_count[row]
        stage_count[row] = num_stages
        for stage in range(num_stages):
            domains[row, stage] = new_domains[row, stage]
            end_layers[row, stage] = new_end_layers[row, stage]


@kernel
def draw_worlds(
    seeds: Whole, pair_of_link: Small, bounds: Real, rows: Whole, base: Figures
) -> None:
    """Draw the base links of the episodes that have these seeds, the same both ways of a pair.

    ``bounds`` are the lowest and highest bandwidth, then those of the latency.
    """
    bandwidths_bytes_per_s, latencies_s = base.bandwidth_bytes_per_s, base.latency_s
    for row in rows:
        seed = int(world_seed(seeds[row]))
        for link in range(pair_of_link.size):
            bandwidth_eps, latency_eps = uniform_pair(seed, pair_of_link[link], 0)
            bandwidths_bytes_per_s[row, link] = within(bounds[0], bounds[1], bandwidth_eps)
            latencies_s[row, link] = within(bounds[2], bounds[3], latency_eps)


@kernel
def draw_epochs(course: Course, links: Links, rows: Whole) -> None:
    """Draw the links as they are at the start of the epochs at which environments stand."""
    seeds, epochs = course.seed, course.epoch
    base_bandwidths, base_latencies = course.base.bandwidth_bytes_per_s, course.base.latency_s
    bandwidths, latencies = course.now.bandwidth_bytes_per_s, course.now.latency_s
    fluctuation, jitter = links.bandwidth_fluctuation, links.latency_jitter
    has_rows, num_links = base_latencies.shape[0] > 1, bandwidths.shape[1]
    for row in rows:
        origin = row if has_rows else 0
        if fluctuation == 0.0 and jitter == 0.0:
            bandwidths[row], latencies[row] = base_bandwidths[origin], base_latencies[origin]
            continue
        seed = int(epoch_seed(seeds[row], epochs[row]))
        for link in range(num_links):
            bandwidth, latency = uniform_factors(seed, link, 0, fluctuation, jitter)
            bandwidths[row, link] = base_bandwidths[origin, link] * bandwidth
            latencies[row, link] = base_latencies[origin, link] * latency


@kernel
def observe_links(
    course: Course, links: Links, num_layers: int, rows: Whole, found: Observations
) -> None:
    """Write the observations of some environments; see `agents.flat.task.PlacementTask.observe`."""
    bandwidths, latencies = course.now.bandwidth_bytes_per_s, course.now.latency_s
    stage_count, domains, end_layers = (
        course.last.num_stages,
        course.last.domain,
        course.last.end_layer,
    )
    back, route_start, hops = links.back, links.route_start, links.hops
    inner_bandwidths, inner_latencies = links.inner_bandwidth_bytes_per_s, links.inner_latency_s
    window_bytes = links.window_bytes
    bandwidth_scale, latency_scale = links.bandwidth_scale, links.latency_scale
    num_domains, num_links = inner_latencies.size, bandwidths.shape[1]
    num_pairs = num_domains * num_domains
    inverses, counts = np.empty(num_links), np.empty(num_domains)
    for row in rows:
        for link in range(num_links):
            rate = bandwidths[row, link]
            if window_bytes < np.inf:
                latency_s = latencies[row, link]
                way_back = link if back[link] < 0 else back[link]
                rate = goodput(rate, latency_s + latencies[row, way_back], window_bytes)
            inverses[link] = 1.0 / rate
        for pair in range(num_pairs):
            inverse, latency_s = 0.0, 0.0
            for hop in range(route_start[pair], route_start[pair + 1]):
                inverse += inverses[hops[hop]]
                latency_s += latencies[row, hops[hop]]
            found[row, pair] = 1.0 / inverse / bandwidth_scale
            found[row, num_pairs + pair] = latency_s / latency_scale
        for domain in range(num_domains):
            pair = domain * num_domains + domain
            found[row, pair] = inner_bandwidths[domain] / bandwidth_scale
            found[row, num_pairs + pair] = inner_latencies[domain] / latency_scale
        counts[:] = 0.0
        begin = 0
        for stage in range(stage_count[row]):
            end = end_layers[row, stage]
            counts[domains[row, stage]] += end - begin
            begin = end
        for domain in range(num_domains):
            found[row, 2 * num_pairs + domain] = counts[domain] / num_layers


@scalar
def within(lowest: float, highest: float, eps: float) -> float:
    """Turn a number within [-1, 1) into one between two bounds."""
    return lowest + (highest - lowest) * (eps + 1.0) / 2.0
