"""The suites by name: what each is for, and of which worlds it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from des.base.checks import LARGEST_COUNT, MOST_ITEMS, require_count, require_seed
from des.plan.replacement import Replacement
from scenarios.suites.recipe import Recipe, load_law_of
from scenarios.suites.sites import MOST_SITE_TRIES, least_site_ratio, site_world
from scenarios.suites.world import Purpose, SuiteWorld

MINUTE_S = 60.0
FULL_PRICE, RESTART_ONLY = Replacement(), Replacement(pays_bytes=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Worlds by index; of several recipes each has its turn.

    Worlds for training and for evaluation have seed streams of their own, and each world there
    could be belongs to one of both by its digest, so no world is drawn for both whatever the
    seeds.
    """

    name: str
    about: str
    purpose: Purpose
    recipes: tuple[Recipe, ...]

    def world(self, index: int, seed: int = 0) -> SuiteWorld:
        """Return the world of an index, counted from 0; the same whatever else is drawn.

        Raises
        ------
        ValueError
            If a number is out of range.
        """
        owner = f"suite {self.name}"
        require_seed(owner, "seed", seed)
        if index != 0:
            require_count(owner, "index", index, LARGEST_COUNT)
        place, turn = divmod(index, len(self.recipes))
        recipe = self.recipes[turn]
        drawn = recipe.draw(seed, place, self.purpose)
        return SuiteWorld(
            name=f"{self.name}-{seed}-{index:04}",
            suite=self.name,
            seed=seed,
            index=index,
            topology=drawn.topology,
            workload=drawn.workload,
            law=drawn.cell.law,
            load=load_law_of(drawn.cell),
            schedule=recipe.schedule,
            epoch_s=drawn.cell.epoch_s,
            num_epochs=recipe.num_epochs,
            iterations_per_epoch=drawn.iterations_per_epoch,
            replacement=drawn.cell.replacement,
            target_ratio=drawn.ratio,
        )

    def worlds(self, num: int, seed: int = 0) -> tuple[SuiteWorld, ...]:
        """Return the first ``num`` worlds of a seed.

        Raises
        ------
        ValueError
            If a number is out of range.
        """
        require_count(f"suite {self.name}", "num", num, MOST_ITEMS)
        return tuple(self.world(index, seed) for index in range(num))

    def has_domains(self, *num_domains: int) -> bool:
        """Whether every recipe has worlds of these numbers of domains."""
        return all(count in one.num_domains for one in self.recipes for count in num_domains)

    def with_domains(self, *num_domains: int) -> "Suite":
        """Return the part of the suite that has these numbers of domains, as a suite.

        Raises
        ------
        ValueError
            If a recipe has no worlds of one of them.
        """
        for recipe in self.recipes:
            for count in num_domains or (0,):
                if count not in recipe.num_domains:
                    allowed = ", ".join(map(str, recipe.num_domains))
                    raise ValueError(
                        f"suite {self.name}: num_domains must be some of {allowed}; "
                        f"got {', '.join(map(str, num_domains)) or 'none'}"
                    )
        parts = tuple(replace(recipe, num_domains=num_domains) for recipe in self.recipes)
        return replace(self, recipes=parts)


_SIZES = (4, 5, 6)

_TRAIN = Recipe(
    stream=0,
    num_domains=(3, 4, 5, 6, 8, 10),
    ratio_bounds=((0.3, 10.0),),
    dynamics=tuple(
        (law, dwell_epochs)
        for law in ("uniform", "ou", "markov_fast", "markov_slow")
        for dwell_epochs in (1, 8, 32)
    ),
    epochs_s=(5 * MINUTE_S, 10 * MINUTE_S, 20 * MINUTE_S),
    replacements=(FULL_PRICE, RESTART_ONLY),
    num_microbatches=(16, 24, 32, 48, 64),
)

_STATIC = Recipe(
    stream=1,
    num_domains=(*_SIZES, 10),
    ratio_bounds=tuple((ratio, ratio) for ratio in (0.5, 1.0, 2.0, 4.0, 8.0)),
    dynamics=(("steady", 1),),
    epochs_s=(20 * MINUTE_S,),
    num_epochs=1,
)

_CALM = Recipe(
    stream=2,
    num_domains=_SIZES,
    ratio_bounds=((0.5, 4.0),),
    dynamics=(("uniform", 1), ("uniform", 1), ("ou_60s", 1), ("ou_600s", 1)),  # half uniform
    epochs_s=(5 * MINUTE_S,),
)

_HELD = Recipe(
    stream=3,
    num_domains=_SIZES,
    ratio_bounds=((0.5, 4.0),),
    dynamics=(("uniform", 8),),
    epochs_s=(5 * MINUTE_S, 20 * MINUTE_S),
)

_HARD = Recipe(
    stream=4,
    num_domains=(*_SIZES, 10),
    ratio_bounds=((0.5, 4.0),),
    dynamics=(("markov_fast", 1), ("markov_slow", 8)),
    epochs_s=(5 * MINUTE_S, 20 * MINUTE_S),
)

_NULL = Recipe(
    stream=5,
    num_domains=_SIZES,
    ratio_bounds=((0.15, 0.25), (16.0, 32.0)),
    dynamics=(("uniform", 1), ("ou_600s", 1)),
    epochs_s=(20 * MINUTE_S,),
)

_HOUR_S = 60 * MINUTE_S

_SITES_STATIC = Recipe(
    stream=6,
    num_domains=(2, 3, 4, 6, 8, 10, 16, 24, 32, 64),
    ratio_bounds=((0.3, 3.0), (3.0, 30.0), (30.0, 300.0)),
    dynamics=(("steady", 1),),
    epochs_s=(_HOUR_S,),
    draw_world=site_world,
    least_ratio=least_site_ratio,
    most_tries=MOST_SITE_TRIES,
    num_epochs=1,
)

_SITES_CALM = replace(
    _SITES_STATIC,
    stream=7,
    dynamics=(("uniform", 1), ("ou_600s", 1)),
    num_epochs=64,
)

_SITES_HELD = replace(_SITES_CALM, stream=8, dynamics=(("uniform", 8),))

_SITES_HARD = replace(_SITES_CALM, stream=9, dynamics=(("markov_fast", 1), ("markov_slow", 8)))


def _suite(name: str, about: str, *recipes: Recipe, purpose: Purpose = "eval") -> Suite:
    return Suite(name=name, about=about, purpose=purpose, recipes=recipes)


_CHEAP = [replace(recipe, replacements=(RESTART_ONLY,)) for recipe in (_HELD, _HARD)]
_ROWS = (
    _suite(
        "train",
        "everything, to learn from: depth and placement, then ratio and persistence",
        _TRAIN,
        purpose="train",
    ),
    _suite("eval_static", "nothing moves: order, split and depth of one plan", _STATIC),
    _suite(
        "eval_calm", "links and load redrawn all the time: a test against needless moves", _CALM
    ),
    _suite("eval_held", "links and load held for 8 epochs: moves that pay within that time", _HELD),
    _suite("hard", "congestion and outages, fast and slow: how long does this one last?", _HARD),
    _suite(
        "cheap_moves",
        "the worlds of eval_held and hard in turn, where a move costs a restart only",
        *_CHEAP,
    ),
    _suite("null", "transfers that cost nothing or everything: there is nothing to win", _NULL),
    _suite(
        "sites_train",
        "the four suites of real sites in turn, to choose rules and figures by",
        *(_SITES_STATIC, _SITES_CALM, _SITES_HELD, _SITES_HARD),
        purpose="train",
    ),
    _suite(
        "sites_static",
        "real sites whose links stand still: which sites, which parallelism",
        _SITES_STATIC,
    ),
    _suite("sites_calm", "real sites, links and load redrawn all the time", _SITES_CALM),
    _suite("sites_held", "real sites, links and load held for 8 epochs", _SITES_HELD),
    _suite("sites_hard", "real sites, congestion and outages, fast and slow", _SITES_HARD),
)

SUITES: Mapping[str, Suite] = MappingProxyType({one.name: one for one in _ROWS})

NAMES = tuple(SUITES)
"""Names of all suites."""

SITE_NAMES = tuple(name for name in NAMES if name.startswith("sites_"))
"""Suites of real sites."""

EXAMPLES_NAME = "examples"
"""Name for the worlds of `des.worlds.EXAMPLES` in lists of suites; they are no suite."""

EVALUATION_NAMES = tuple(
    name for name, one in SUITES.items() if one.purpose == "eval" and name not in SITE_NAMES
)
"""Suites on a plane that methods are judged on."""


def suite(name: str) -> Suite:
    """Look up a suite.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.

    Examples
    --------
    >>> world = suite("hard").world(0)
    >>> world.num_domains, world.law, world.workload.name, world.iterations_per_epoch
    (5, 'markov_fast', 'llama2_7b', 494)
    """
    if name not in SUITES:
        raise ValueError(f"suite: name must be one of {', '.join(NAMES)}; got {name!r}")
    return SUITES[name]
