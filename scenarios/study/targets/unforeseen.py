"""Laws of worlds as lists of networks, for the best policy that cannot foresee."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

import numpy as np

from agents.decision.frozen_network import freeze_topologies, freeze_topology
from agents.judge.steady_judge import SteadyJudge
from agents.replanning.known_times import KnownTimes
from agents.replanning.listed_law import ListedLaw, follow_law
from agents.replanning.plan_costs import Changes
from agents.replanning.tables import EpisodeTables, total_s
from agents.replanning.training_schedulers import SAMPLE_SHIFT
from des import MarkovModulated, Plan, Topology, UniformLaw
from des.compiled.many.layout import Real, Whole
from des.dynamics.markov_chances import chances_after
from scenarios.suites import SuiteWorld

NUM_SAMPLED = 64
"""Networks that stand for a law of continuous figures, all equally likely."""

MOST_STATES = 1_000
"""Most joint states of the links of a law that are listed."""

_LOADS = 4
"""Loads that stand for their law with each state of the links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Networks of a law and the states of the epochs of a draw.

    Attributes
    ----------
    state, chance, stretch_epochs
        As in `agents.replanning.listed_law.ListedLaw`.
    states_of_epochs
        State in each epoch, (E,).
    """

    networks: Sequence[Topology]
    state: Whole
    chance: np.ndarray
    states_of_epochs: Whole
    stretch_epochs: int = 1


def unforeseen_s(
    world: SuiteWorld, draw: int, tables: EpisodeTables, times: KnownTimes | None = None
) -> float | None:
    """Time of a draw under the best policy that knows only its law; None: see `why_unlisted`. [s]

    It chooses among the plans of the tables, all known from the start. A law of continuous figures
    is replaced by `NUM_SAMPLED` networks of other draws. ``times`` are as in `tables_of`.
    """
    if why_unlisted(world):
        return None
    listing = listing_of(world, draw)
    times = times or KnownTimes(SteadyJudge(world.workload, world.num_domains))
    iteration_s = times.on_all(("law", draw), listing.networks, tables.plans)
    law = _law_of(world, tables.plans, listing, iteration_s)
    return total_s(tables, follow_law(tables, law, listing.states_of_epochs))


def why_unlisted(world: SuiteWorld) -> str:
    """Reason why the states of a world's law cannot be listed; empty: they can.

    Listed are networks that are drawn independently every few epochs, and links under a Markov
    law where their joint states are at most `MOST_STATES` and the load is drawn in every epoch.
    """
    law, dwell = world.topology.dynamics, world.load.dwell_epochs
    if isinstance(law, UniformLaw):
        held_s = law.update_interval_s
        is_in_step = held_s is not None and np.isclose(held_s, dwell * world.epoch_s)
        return "" if is_in_step else "links and load are drawn at different times"
    if not isinstance(law, MarkovModulated):
        return "links wander without steps"
    if dwell > 1:
        return "links move while the load is held"
    if law.correlation:
        return "links move together"
    num_states, num_links = len(law.states), len(world.topology.links)
    if num_states**num_links > MOST_STATES:
        return f"{num_states}^{num_links} states of the links"
    return "" if _has_distinct_states(law) else "states of a link cannot be distinguished"


def listing_of(world: SuiteWorld, draw: int) -> Listing:
    """List the networks of a world's law, for a draw of it; `why_unlisted` must be empty."""
    is_markov = isinstance(world.topology.dynamics, MarkovModulated)
    return _list_chain(world, draw) if is_markov else _list_draws(world, draw)


def _has_distinct_states(law: MarkovModulated) -> bool:
    factors = {state.bandwidth_factor for state in law.states}
    return len(factors) == len(law.states) and min(factors) > 0.0


def _list_draws(world: SuiteWorld, draw: int) -> Listing:
    """`NUM_SAMPLED` networks of other draws, each in force for the stretch of the draw."""
    stretch, epochs = world.load.dwell_epochs, range(0, world.num_epochs, world.load.dwell_epochs)
    networks = [
        freeze_topology(world, draw + SAMPLE_SHIFT + number // len(epochs), epochs[place])
        for number in range(NUM_SAMPLED)
        for place in [number % len(epochs)]
    ]
    return Listing(
        networks=networks,
        state=np.zeros(NUM_SAMPLED, dtype=np.int64),
        chance=np.full((1, NUM_SAMPLED), 1.0 / NUM_SAMPLED),
        states_of_epochs=np.zeros(world.num_epochs, dtype=np.int64),
        stretch_epochs=stretch,
    )


def _list_chain(world: SuiteWorld, draw: int) -> Listing:
    """Every joint state of the links, under each of `_LOADS` loads of other draws."""
    law, links = world.topology.dynamics, world.topology.links
    assert isinstance(law, MarkovModulated)
    every = list(product(law.states, repeat=len(links)))
    samples = [freeze_topology(world, draw + SAMPLE_SHIFT + one, 0) for one in range(_LOADS)]
    networks = [
        replace(
            samples[0],
            domains=sample.domains,
            links=tuple(
                replace(
                    link,
                    bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * state.bandwidth_factor,
                    latency_s=link.latency_s * state.latency_factor,
                )
                for link, state in zip(links, states, strict=True)
            ),
        )
        for states in every
        for sample in samples
    ]
    joint = reduce(np.kron, [chances_after(law, world.epoch_s)] * len(links))
    return Listing(
        networks=networks,
        state=np.repeat(np.arange(len(every)), _LOADS),
        chance=np.repeat(joint, _LOADS, axis=1) / _LOADS,
        states_of_epochs=_states_of(world, law, freeze_topologies(world, draw)),
    )


def _states_of(world: SuiteWorld, law: MarkovModulated, networks: Sequence[Topology]) -> Whole:
    """Joint state of the links in each epoch, by its number in their product, (E,)."""
    factors = np.array([state.bandwidth_factor for state in law.states])
    base = np.array([link.bandwidth_bytes_per_s for link in world.topology.links])
    now = np.array([[link.bandwidth_bytes_per_s for link in one.links] for one in networks])
    digits = np.abs((now / base)[..., np.newaxis] - factors).argmin(axis=2)
    places = len(factors) ** np.arange(len(base))[::-1]
    states: Whole = digits @ places
    return states


def _law_of(
    world: SuiteWorld, plans: Sequence[Plan], listing: Listing, iteration_s: Real
) -> ListedLaw:
    """Judge changes of plans once for each set of links of the networks."""
    changes = Changes(world.workload, plans, world.num_domains, world.replacement)
    numbers: dict[tuple[object, ...], int] = {}
    moves_of = [numbers.setdefault(one.links, len(numbers)) for one in listing.networks]
    first = [moves_of.index(number) for number in range(len(numbers))]
    return ListedLaw(
        epoch_s=world.epoch_s,
        iteration_s=iteration_s,
        move_s=np.array([changes.times_s(listing.networks[row]) for row in first]),
        moves_of=np.array(moves_of),
        state=listing.state,
        chance=listing.chance,
        stretch_epochs=listing.stretch_epochs,
    )
