"""Links of episodes and epochs, and what is seen of them; the twin of `agents.flat.worlds`."""

import numpy as np

from agents.flat.kernels.seeds import epoch_seed, world_seed
from agents.flat.kernels.worlds import within
from des.base.arithmetic import goodput
from des.base.jit import kernel
from des.base.random_numbers import uniform_pair
from des.compiled.many.layout import Course, Figures, Links, Observations, Real, Small, Whole
from des.dynamics.uniform_course import uniform_factors


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
