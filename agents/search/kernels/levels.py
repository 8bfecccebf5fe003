"""Level splits: layers by which no device is busy for longer than a time, and bounds by them."""

import numpy as np

from agents.search.kernels.capacity import has_memory
from agents.search.kernels.layouts import num_held
from agents.search.kernels.records import SiteFigures, SiteLevels, SiteMemory, TimingRules
from des.base.jit import inner_kernel, lean_kernel


@inner_kernel
def levels_of_sites(figures: SiteFigures) -> SiteLevels:
    """Levels of all sites."""
    return SiteLevels(figures.layer_s, figures.num_devices, figures.most_layers)


@inner_kernel
def levels_under(levels: SiteLevels, memory: SiteMemory, at: int) -> tuple[SiteLevels, SiteMemory]:
    """Levels and memory of all sites under one of several settings."""
    own = SiteLevels(levels.layer_s[at], levels.num_devices[at], levels.most_layers[at])
    return own, SiteMemory(memory.room_bytes[at], memory.layer_bytes[at])


@inner_kernel
def level_s(levels: SiteLevels, num_layers: int, chain: np.ndarray, num_chunks: int) -> float:
    """Least time of the busiest device for one microbatch, links apart; infinite if too few. [s]

    Every device of a site has as many layers as it can do in that time, all sites together no fewer
    than the model has.
    """
    least_s = np.inf
    for at in range(len(chain)):
        one_s = levels.layer_s[chain[at]]
        if not one_s < np.inf or _is_known(levels, chain, at):  # no device there has a stage
            continue
        low, high = num_chunks, num_layers
        if least_s < np.inf:
            high = min(high, int(np.ceil(least_s / one_s)) - 1)
        if high < low or _num_held_by(levels, chain, high * one_s, num_chunks) < num_layers:
            continue
        while low < high:
            count = (low + high) // 2
            if _num_held_by(levels, chain, count * one_s, num_chunks) >= num_layers:
                high = count
            else:
                low = count + 1
        least_s = min(least_s, low * one_s)
    return least_s


@inner_kernel
def _is_known(levels: SiteLevels, chain: np.ndarray, at: int) -> bool:
    """Whether a site before one of a chain takes as long for a layer."""
    num_alike: int = 0
    for before in range(at):
        num_alike += levels.layer_s[chain[before]] == levels.layer_s[chain[at]]
    return num_alike > 0


@lean_kernel
def write_least_s(
    levels: SiteLevels,
    memory: SiteMemory,
    outer_s: np.ndarray,
    num_layers: int,
    rules: TimingRules,
    chains: np.ndarray,
    lengths: np.ndarray,
    times_s: np.ndarray,
) -> float:
    """Write `foreseen_s` and `_least_sent_s` of chains, (chains, 2); returns the least bound. [s]

    Both are infinite where a site of the chain has no device, or no quick split fits.
    """
    least_s = np.inf
    for each in range(len(chains)):
        chain = chains[each, : lengths[each]]
        fewest = levels.num_devices[chain[0]]
        for at in range(1, len(chain)):
            fewest = min(fewest, levels.num_devices[chain[at]])
        times_s[each, 0] = times_s[each, 1] = np.inf
        if fewest < 1 or not has_memory(memory, levels.num_devices, num_layers, rules, chain):
            continue
        times_s[each, 0] = foreseen_s(levels, num_layers, rules, chain)
        times_s[each, 1] = _least_sent_s(levels, outer_s, num_layers, rules, chain)
        least_s = min(least_s, max(times_s[each, 0], times_s[each, 1]))
    return least_s


@inner_kernel
def _least_sent_s(
    levels: SiteLevels, outer_s: np.ndarray, num_layers: int, rules: TimingRules, chain: np.ndarray
) -> float:
    """Least time of an iteration by the messages between the sites of a chain. [s]

    A link carries those of all chunks. Where sends block they hold up the first and last device of
    a site, so that all devices together have less time for the layers of the model.
    """
    size, longest_s, rate, held_layers = len(chain), 0.0, 0.0, 0.0
    for at in range(size):
        one_s = levels.layer_s[chain[at]]
        rate += levels.num_devices[chain[at]] / one_s
        if at + 1 < size:
            down, up = outer_s[chain[at], chain[at + 1]], outer_s[chain[at + 1], chain[at]]
            longest_s = max(longest_s, rules.num_chunks * max(down[0], up[0]))
            held_layers += (down[0] + down[1]) / one_s
            held_layers += (up[0] + up[1]) / levels.layer_s[chain[at + 1]]
    if rules.num_chunks > 1 and size > 1:
        first, last = chain[0], chain[size - 1]
        longest_s = max(longest_s, _back_s(outer_s, first, last, size, rules.num_chunks))
    if rules.is_blocking and rules.num_chunks == 1:
        longest_s = max(longest_s, (num_layers + held_layers) / rate)
    return (rules.num_microbatches - 1) * longest_s


@inner_kernel
def _back_s(outer_s: np.ndarray, first: int, last: int, size: int, num_chunks: int) -> float:
    """Transfer of the messages between the ends of a chain, from one chunk to the next. [s]

    Of two sites the link also carries those of all chunks.
    """
    count = num_chunks - 1 if size > 2 else 2 * num_chunks - 1
    slower_s: float = max(outer_s[last, first, 0], outer_s[first, last, 0])
    return count * slower_s


@lean_kernel
def write_foreseen_s(
    levels: SiteLevels,
    memory: SiteMemory,
    num_layers: int,
    orders: np.ndarray,
    paces: np.ndarray,
    chain: np.ndarray,
    times_s: np.ndarray,
) -> None:
    """Write `foreseen_s` of the sites of a chain under each of some settings. [s]

    Infinite too where no quick split of them fits.

    Parameters
    ----------
    levels, memory
        Of every setting, (settings, sites) each.
    orders
        Microbatches, chunks, forwards ahead, and whether sends block, (settings, 4).
    paces
        Depth, how far weight gradients stay behind, and size of groups, (settings, 3).
    """
    for each in range(len(times_s)):
        own, held = levels_under(levels, memory, each)
        pace = (paces[each, 0], paces[each, 1], orders[each, 2])
        count, chunks, blocks = orders[each, 0], orders[each, 1], orders[each, 3] > 0
        rules = TimingRules(pace, chunks, paces[each, 2], blocks, False, False, count, 0)
        times_s[each] = np.inf
        if has_memory(held, own.num_devices, num_layers, rules, chain):
            times_s[each] = foreseen_s(own, num_layers, rules, chain)


@inner_kernel
def foreseen_s(levels: SiteLevels, num_layers: int, rules: TimingRules, chain: np.ndarray) -> float:
    """Time of an iteration without any wait: one microbatch all the way, then the busiest device.

    The fastest site's layers stand for all of the way, and the time of several chunks is shared.
    Where weight gradients stay behind they fill the time of the way. Infinite where layers do not
    fit, with a single microbatch too.
    """
    fastest_s = np.inf
    for at in range(len(chain)):
        fastest_s = min(fastest_s, levels.layer_s[chain[at]])
    way_s = 0.0 if rules.pace[1] >= 0.0 else num_layers * fastest_s / rules.num_chunks
    busiest_s = level_s(levels, num_layers, chain, rules.num_chunks)
    if busiest_s == np.inf:
        return np.inf
    found_s: float = (rules.num_microbatches - 1) * busiest_s + max(way_s, busiest_s)
    return found_s


@inner_kernel
def _num_held_by(levels: SiteLevels, chain: np.ndarray, pace_s: float, num_chunks: int) -> int:
    total: int = 0
    for at in range(len(chain)):
        each: int = _layers_within(levels, chain[at], pace_s)
        devices: int = levels.num_devices[chain[at]]
        if each >= num_chunks:
            total = total + devices * each
    return total


@inner_kernel
def _layers_within(levels: SiteLevels, site: int, pace_s: float) -> int:
    count = int(pace_s / levels.layer_s[site] * (1.0 + 1e-12))
    return int(min(count, levels.most_layers[site]))


@inner_kernel
def write_level(
    figures: SiteFigures,
    chain: np.ndarray,
    pace_s: float,
    num_chunks: int,
    is_lean: bool,
    split: np.ndarray,
) -> bool:
    """Write a split in which no device is busy for longer than a time; False where there is none.

    Layers that devices have less than they could are taken from the slowest sites' devices first.
    Lean splits have no more devices than needed.
    """
    num_layers, total, levels = figures.passes_s.shape[2] - 1, 0, levels_of_sites(figures)
    for at in range(len(chain)):
        each = _layers_within(levels, chain[at], pace_s)
        if each < num_chunks:
            return False
        split[at, 0] = min(figures.num_devices[chain[at]], num_layers // num_chunks)
        split[at, 1] = split[at, 0] * each
        total += split[at, 1]
    if total < num_layers:
        return False
    while total > num_layers:
        worst, worst_s = 0, -1.0
        for at in range(len(chain)):
            if split[at, 1] > split[at, 0] * num_chunks or split[at, 0] > 1:
                count = -(-split[at, 1] // split[at, 0])
                own_s = count * figures.layer_s[chain[at]]
                if own_s > worst_s:
                    worst, worst_s = at, own_s
        split[worst, 1] -= 1
        if split[worst, 1] < split[worst, 0] * num_chunks:
            split[worst, 0] -= 1
        if split[worst, 0] < 1:
            return False
        total -= 1
    if is_lean:
        for at in range(len(chain)):
            each = _layers_within(levels, chain[at], pace_s)
            split[at, 0] = min(split[at, 0], -(-split[at, 1] // each))
    return True


@inner_kernel
def write_fitting_level(
    figures: SiteFigures, rules: TimingRules, chain: np.ndarray, split: np.ndarray
) -> bool:
    """Write a split over sites of one device each, as level as memory allows; False if none is.

    The next layer goes to the device that is done with it first, of those with room for it; all
    layers count as the mean one.
    """
    num_layers, size = figures.passes_s.shape[2] - 1, len(chain)
    for at in range(size):
        most = _most_in_order(figures, rules, chain[at], size, at)
        if figures.num_devices[chain[at]] != 1 or most < 1:
            return False
        split[at, 0], split[at, 1] = most, 1  # the first is how many there is room for, as yet
    for _ in range(num_layers - size):
        least, least_s = -1, np.inf
        for at in range(size):
            own_s = (split[at, 1] + 1) * figures.layer_s[chain[at]]
            if split[at, 1] < split[at, 0] and own_s < least_s:
                least, least_s = at, own_s
        if least < 0:
            return False
        split[least, 1] += 1
    for at in range(size):
        split[at, 0] = 1
    return bool(size <= num_layers)


@inner_kernel
def _most_in_order(
    figures: SiteFigures, rules: TimingRules, site: int, num_workers: int, worker: int
) -> int:
    """Layers that a worker has room for with the microbatches that its schedule holds."""
    held = num_held(rules, num_workers, worker)
    late = max(0.0, min(rules.pace[1] * worker, rules.num_microbatches - held))
    kept_bytes, halved_bytes = figures.kept_bytes[site, -1], figures.halved_bytes[site, -1]
    needed = held * kept_bytes + late * halved_bytes
    if rules.pace[1] >= 0.0:
        needed = max(needed, (held - 1) * kept_bytes + (late + 1) * halved_bytes)
    num_layers = figures.passes_s.shape[2] - 1
    each_bytes = (figures.state_bytes[site, -1] + needed) / num_layers
    return int(min(figures.room_bytes[site] / each_bytes, float(num_layers)))


@inner_kernel
def write_even(figures: SiteFigures, rules: TimingRules, split: np.ndarray) -> bool:
    """Write layers of which all stages have equally many; False where that cannot be."""
    num_layers, num_workers = figures.passes_s.shape[2] - 1, 0
    for at in range(len(split)):
        num_workers += split[at, 0]
    num_stages = num_workers * rules.num_chunks
    if num_layers % num_stages:
        return False
    for at in range(len(split)):
        split[at, 1] = split[at, 0] * (num_layers // num_workers)
    return True
