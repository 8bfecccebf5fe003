"""Arrays that the compiled loops of the search read: figures of sites, and room to work in."""

from typing import NamedTuple

import numpy as np


class SiteFigures(NamedTuple):
    """Figures of all sites under one setting: S sites, L layers, sums over layers before each one.

    ``passes_s`` (S, 4, L + 1) are times of the passes F, B, D and W for a microbatch; ``state`` and
    ``kept`` (S, L + 1) the bytes of a device for its layers and for their activations of one
    microbatch, ``halved`` what of these waits for weight gradients; ``room_bytes`` (S,) is the
    memory of a device. ``parameters`` (2, L + 1) are those that every copy has, and those of
    experts that copies share; ``sums_s`` (S, K, 2, 2, 2) the time to sum up gradients of either
    over the copies of each device, or (K = 1) of any, by ring and by tree: for none, and for each
    parameter more; ``update_s`` (S, 3) the time of an update for none, and for each parameter of
    either. ``num_devices`` (S,).
    Of all layers ``layer_s`` (S,) is the mean time of the passes of one, ``most_layers`` (S,) how
    many a device can hold. ``inner_s`` (S, K, 2) are transfer and latency from a device to the next
    one of its site, ``back_s`` (S, K, 2) those from a device to the first one, ``outer_s`` (S, S,
    2) those between sites, infinite where no path leads.
    """

    passes_s: np.ndarray
    state_bytes: np.ndarray
    kept_bytes: np.ndarray
    halved_bytes: np.ndarray
    room_bytes: np.ndarray
    parameters: np.ndarray
    sums_s: np.ndarray
    update_s: np.ndarray
    num_devices: np.ndarray
    layer_s: np.ndarray
    most_layers: np.ndarray
    inner_s: np.ndarray
    back_s: np.ndarray
    outer_s: np.ndarray


class SiteLevels(NamedTuple):
    """Figures of the levels of sites: see `SiteFigures`, (sites,), or (settings, sites)."""

    layer_s: np.ndarray
    num_devices: np.ndarray
    most_layers: np.ndarray


class SiteMemory(NamedTuple):
    """Memory of a device of each site, (sites,), or (settings, sites); least bytes of a layer.

    ``layer_bytes`` are model state and the activations of a microbatch, (2,), or (settings, 2).
    """

    room_bytes: np.ndarray
    layer_bytes: np.ndarray


class TimingRules(NamedTuple):
    """Schedule of a setting and how it is reckoned.

    ``pace`` is depth, how far weight gradients stay behind (below 0: backward passes are whole) and
    forwards ahead, see `des.schedules.registry.Pace`; with more than one chunk the order is the
    interleaved one in groups of ``group_factor`` times the pipeline's devices. Of more than
    ``most_microbatches`` the time is carried on from those at the pace of the last ones; 0
    simulates all. With ``is_even`` all stages have equally many layers. With ``whole_groups`` a
    last group of microbatches has none, or at least as many as the pipeline has devices.
    """

    pace: tuple[float, float, int]
    num_chunks: int
    group_factor: float
    is_blocking: bool
    is_even: bool
    whole_groups: bool
    num_microbatches: int
    most_microbatches: int


class SettingFamilies(NamedTuple):
    """Schedules of settings in families, which differ by the size of groups alone.

    ``orders`` and ``paces`` are those of `levels.write_foreseen_s`, ``factors`` (families, sizes)
    the sizes of groups, of which a family has ``num_sizes``. ``figures_at`` is where the figures of
    a family are, and ``is_there`` which of these are worked out; ``outer_at`` (families,) where its
    ways between sites are in ``outer_s`` (ways, S, S, 2). The others are as in `TimingRules`.
    """

    orders: np.ndarray
    paces: np.ndarray
    factors: np.ndarray
    num_sizes: np.ndarray
    figures_at: np.ndarray
    is_there: np.ndarray
    outer_at: np.ndarray
    outer_s: np.ndarray
    is_even: bool
    whole_groups: bool
    most_microbatches: int


class SurveyLimits(NamedTuple):
    """Multiples of the quickest time of a survey up to which others count.

    ``bound``: settings and chains, by their bounds; ``slack``: what is found; ``near``: of the
    smallest groups of a family, so that larger ones are tried; ``kept``: splits of a setting, at
    most, over the quickest of them.
    """

    bound: float
    slack: float
    near: float
    kept: float


class FoundSplits(NamedTuple):
    """Splits that a survey found: devices and layers of sites, and layers of each stage, or 0.

    ``of`` (splits, 3) has the family, the place of the size of groups in it, and the chain.
    """

    of: np.ndarray
    splits: np.ndarray
    counts: np.ndarray
    times_s: np.ndarray


class SurveyPlace(NamedTuple):
    """Position of a survey.

    ``next`` has the next family and size, whether something was found, and how many pipelines were
    simulated; ``best_s`` the quickest time and that of the family, NaN: none as yet. ``seen_s``
    (families, sizes) are the quickest times found, ``least_s`` bounds of chains, ``scratch`` room.
    """

    next: np.ndarray
    best_s: np.ndarray
    seen_s: np.ndarray
    least_s: np.ndarray
    scratch: np.ndarray


class Room(NamedTuple):
    """Arrays to work in, for pipelines of limited workers, stages and microbatches.

    ``sums_s`` is the time of a stage's sum over copies, ``made_s`` the end of its last backward;
    ``no_counts`` is empty, ``counts`` are layers of stages, ``loads_s`` what workers do for a
    microbatch, see `held_levels`.
    """

    orders: np.ndarray
    places: np.ndarray
    passes_s: np.ndarray
    borders_s: np.ndarray
    wires: np.ndarray
    done: np.ndarray
    free_s: np.ndarray
    wire_free_s: np.ndarray
    arrivals_s: np.ndarray
    sums_s: np.ndarray
    made_s: np.ndarray
    next_s: np.ndarray
    no_counts: np.ndarray
    counts: np.ndarray
    loads_s: np.ndarray


def new_room(num_workers: int, num_chunks: int, num_rows: int, num_microbatches: int) -> Room:
    """Make room for pipelines; ``num_rows`` are the operations of a worker."""
    num_stages = num_workers * num_chunks
    return Room(
        orders=np.zeros((num_workers, num_rows + 1, 3), np.int32),
        places=np.zeros((num_stages, 4), np.int64),
        passes_s=np.zeros((num_stages, 4)),
        borders_s=np.zeros((num_stages, 4)),
        wires=np.zeros((num_stages, 2), np.int64),
        done=np.zeros(num_workers, np.int64),
        free_s=np.zeros(num_workers),
        wire_free_s=np.zeros((2 * num_stages, 2)),
        arrivals_s=np.zeros((num_stages, 2, num_microbatches)),
        sums_s=np.zeros(num_stages),
        made_s=np.zeros(num_stages),
        next_s=np.zeros(num_workers),
        no_counts=np.zeros(0, np.int64),
        counts=np.zeros(num_stages, np.int64),
        loads_s=np.zeros((num_workers, 3)),
    )
