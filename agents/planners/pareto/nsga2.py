"""A front by a genetic algorithm: NSGA-II over orders, subsets, splits and depths."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pymoo.algorithms.moo.nsga2 import NSGA2  # type: ignore[import-untyped]
from pymoo.core.crossover import Crossover  # type: ignore[import-untyped]
from pymoo.core.mutation import Mutation  # type: ignore[import-untyped]
from pymoo.core.problem import Problem  # type: ignore[import-untyped]
from pymoo.core.sampling import Sampling  # type: ignore[import-untyped]

from agents.planners.pareto.fronts import Archive, Front
from agents.planners.pareto.plan_objectives import TIME_COST_UTILISATION, ObjectiveJudge
from agents.planners.search.search_moves import STEPS
from des.base.checks import require_count, require_seed
from des.compiled.many.steady import FITS, Plans, overflows

NUM_EVALUATIONS = 20_000
POPULATION_SIZE = 200

_CROSSOVER_PROBABILITY = 0.9
_MORE_MUTATIONS = 0.4
"""Probability that one more change follows a change."""

Genomes = npt.NDArray[np.int64]
"""Shaped (N, 2 K + 2): an order of all K domains, how many of them are in use, a schedule, and the
layers of each domain. Layers of domains that are not in use wait for their turn."""


def nsga2(
    judge: ObjectiveJudge,
    *,
    objectives: Sequence[str] = TIME_COST_UTILISATION,
    num_evaluations: int = NUM_EVALUATIONS,
    population_size: int = POPULATION_SIZE,
    seed: int = 0,
    explores: bool = False,
    each_generation: Callable[[int], None] = lambda _: None,
) -> Front:
    """Search a judge's plans for the non-dominated ones, by NSGA-II [1]_ of pymoo.

    The front is that of all plans that were judged, not of the last population alone. Equal
    arguments give equal results.

    Parameters
    ----------
    num_evaluations
        Plans to judge at least; equal ones of one population count once. Fewer are judged where
        there are too few to fill a generation with plans that its population does not have.
    seed
        Within [0, 2**63).
    explores
        Whether to continue, after the last generation, with orders and splits one change away from
        a plan of the front until none of these belongs to it: `Archive.explore`.
    each_generation
        Called with the number of plans judged so far.

    Raises
    ------
    ValueError
        If a number is out of range.
    InfeasiblePlacementError
        If no plan was found that fits.

    Notes
    -----
    Half of the first population has its layers split evenly in time
    (`des.compiled.many.steady.water_fill`), half at random. A child's order begins as one parent's
    does and continues as the other's; domains keep the layers that one of the parents gives them.
    Changes swap, move or turn domains, take one more or one less, move 1, 2, 4 or 8 layers from a
    stage to another, or choose another schedule. Plans that do not fit are worse than all that do.

    References
    ----------
    .. [1] K. Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE
       Trans. Evol. Comput. 6(2), 2002; J. Blank and K. Deb, "pymoo: Multi-objective optimization in
       Python", IEEE Access 8, 2020.
    """
    require_count("nsga2", "num_evaluations", num_evaluations)
    require_count("nsga2", "population_size", population_size)
    require_seed("nsga2", "seed", seed)
    archive = Archive(judge, objectives)
    algorithm = NSGA2(
        pop_size=population_size,
        sampling=_Sampling(),
        crossover=_Crossover(prob=_CROSSOVER_PROBABILITY),
        mutation=_Mutation(),
        eliminate_duplicates=True,
    )
    problem = _Problem(judge, archive)
    drawing_seed = int(np.random.default_rng(seed).integers(2**31))  # pymoo takes 32 bits
    algorithm.setup(
        problem, termination=("n_eval", num_evaluations), seed=drawing_seed, verbose=False
    )
    algorithm.next()
    num_new = population_size
    while algorithm.has_next() and num_new >= population_size:
        before = problem.num_evaluated
        algorithm.next()
        num_new = problem.num_evaluated - before
        each_generation(problem.num_evaluated)
    num_judged = judge.judge.num_judged
    if explores:
        archive.explore()
    num_explored = judge.judge.num_judged - num_judged
    return replace(archive.front(), num_judged=problem.num_evaluated + num_explored)


class _Problem(Problem):  # type: ignore[misc]
    """Objectives of genomes, and the memory that they lack."""

    def __init__(self, judge: ObjectiveJudge, archive: Archive) -> None:
        self.judge, self.archive, self.num_evaluated = judge, archive, 0
        self.num_domains = judge.judge.topology.num_domains
        super().__init__(
            n_var=2 * self.num_domains + 2,
            n_obj=len(archive.objectives),
            n_ieq_constr=1,
            vtype=int,
        )

    def _evaluate(self, x: Genomes, out: dict[str, Any]) -> None:
        judge, plans = self.judge.judge, self.decoded(x)
        self.num_evaluated += len(x)
        lacking = np.empty(len(x))
        overflows(judge.job, judge.programs, plans, lacking)
        lacking = np.where(lacking == FITS, 0.0, 1.0 + lacking)
        lacking[~self.judge.are_joined(plans)] += judge.topology.num_domains
        points = np.zeros((len(x), self.n_obj))
        rows = np.flatnonzero(lacking == 0.0)
        fitting = Plans(*(field[rows] for field in plans))
        points[rows] = self.archive.add(fitting)
        out["F"], out["G"] = points, lacking[:, np.newaxis]

    def decoded(self, genomes: Genomes) -> Plans:
        """Plans of genomes; layers are scaled to all there are, each stage has one at least."""
        judge, num_domains = self.judge.judge, self.num_domains
        most = judge.most_stages
        order = genomes[:, :most]
        size = np.clip(genomes[:, num_domains], 1, most)
        given = np.take_along_axis(genomes[:, num_domains + 2 :], order, axis=1)
        is_stage = np.arange(most) < size[:, np.newaxis]
        counts = _scale(np.where(is_stage, given, 0), is_stage, judge.workload.num_layers)
        return Plans(
            num_stages=size.astype(np.int32),
            schedule=genomes[:, num_domains + 1].astype(np.int32),
            domain=np.ascontiguousarray(order, dtype=np.int32),
            end_layer=np.cumsum(counts, axis=1, dtype=np.int32),
        )

    def encoded(self, orders: Genomes, plans: Plans) -> Genomes:
        """Genomes of plans, given orders of all domains that begin with theirs."""
        counts = np.diff(plans.end_layer, axis=1, prepend=0)
        is_stage = np.arange(counts.shape[1]) < plans.num_stages[:, np.newaxis]
        mean = self.judge.judge.workload.num_layers // self.num_domains + 1
        layers = np.full(orders.shape, mean, dtype=np.int64)
        rows, places = np.nonzero(is_stage)
        layers[rows, plans.domain[rows, places]] = counts[rows, places]
        return np.column_stack([orders, plans.num_stages, plans.schedule, layers])


def _scale(layers: Genomes, is_stage: np.ndarray, num_layers: int) -> Genomes:
    """Scale counts of layers to a sum by largest remainders, shaped (N, S); what sums up stays."""
    beyond = np.where(is_stage, np.maximum(layers - 1, 0), 0).astype(np.float64)
    beyond[beyond.sum(axis=1) == 0.0] = 1.0
    beyond *= is_stage
    left = num_layers - is_stage.sum(axis=1)
    shares = beyond / beyond.sum(axis=1, keepdims=True) * left[:, np.newaxis]
    counts = np.floor(shares + 1e-9).astype(np.int64)
    by_rest = np.argsort(np.where(is_stage, counts - shares, np.inf), axis=1, kind="stable")
    gets = np.arange(layers.shape[1]) < (left - counts.sum(axis=1))[:, np.newaxis]
    np.put_along_axis(counts, by_rest, np.take_along_axis(counts, by_rest, axis=1) + gets, axis=1)
    scaled: Genomes = counts + is_stage
    return scaled


class _Sampling(Sampling):  # type: ignore[misc]
    """First genomes: any order, half of them with even stages."""

    def _do(
        self,
        problem: _Problem,
        n_samples: int,
        *_: object,
        random_state: np.random.Generator,
        **__: object,
    ) -> Genomes:
        rng, num_domains = random_state, problem.num_domains
        judge = problem.judge.judge
        orders = rng.permuted(np.tile(np.arange(num_domains), (n_samples, 1)), axis=1)
        sizes = rng.integers(1, judge.most_stages + 1, n_samples)
        schedules = rng.integers(len(judge.schedules), size=n_samples)
        layers = rng.integers(1, judge.workload.num_layers + 1, orders.shape)
        drawn = np.column_stack([orders, sizes, schedules, layers])
        plans = problem.decoded(drawn)
        even = np.flatnonzero(problem.judge.are_joined(plans))[: n_samples // 2]
        some = Plans(*(field[even] for field in plans))
        judge.fill(some)
        drawn[even] = problem.encoded(orders[even], some)
        return drawn


class _Crossover(Crossover):  # type: ignore[misc]
    """Two children of two parents, each with the other's part of all that is not its own."""

    def __init__(self, *, prob: float) -> None:
        super().__init__(2, 2, prob=prob)

    def _do(
        self,
        problem: _Problem,
        parents: Genomes,
        *_: object,
        random_state: np.random.Generator,
        **__: object,
    ) -> Genomes:
        rng, num_domains = random_state, problem.num_domains
        children = parents.copy()
        num_pairs = parents.shape[1]
        cuts = rng.integers(0, num_domains + 1, (num_pairs, 1))
        is_other = rng.random((num_pairs, num_domains + 2)) < 0.5
        for child, (own, other) in enumerate((parents, parents[::-1])):
            places = np.argsort(own[:, :num_domains], axis=1)
            later = num_domains + np.argsort(other[:, :num_domains], axis=1)
            keys = np.where(places < cuts, places, later)
            children[child, :, :num_domains] = np.argsort(keys, axis=1)
            rest = np.where(is_other, other[:, num_domains:], own[:, num_domains:])
            children[child, :, num_domains:] = rest
        return children


class _Mutation(Mutation):  # type: ignore[misc]
    """One or more small changes of each genome."""

    def _do(
        self,
        problem: _Problem,
        genomes: Genomes,
        *_: object,
        random_state: np.random.Generator,
        **__: object,
    ) -> Genomes:
        changed = genomes.copy()
        plans = problem.decoded(genomes)
        changed = problem.encoded(changed[:, : problem.num_domains], plans)
        for genome in changed:
            _change(problem, genome, random_state)
            while random_state.random() < _MORE_MUTATIONS:
                _change(problem, genome, random_state)
        return changed


def _change(problem: _Problem, genome: Genomes, rng: np.random.Generator) -> None:
    """Change the order, the number of domains, the schedule or the split."""
    num_domains, judge = problem.num_domains, problem.judge.judge
    order, size = genome[:num_domains], int(genome[num_domains])
    kind = rng.integers(6)
    if kind == 0:
        genome[num_domains] = np.clip(size + rng.choice((-1, 1)), 1, judge.most_stages)
    elif kind == 1:
        genome[num_domains + 1] = rng.integers(len(judge.schedules))
    elif kind == 2 and num_domains > 1:
        one, other = rng.integers(size), rng.integers(num_domains)
        order[one], order[other] = order[other], order[one]
    elif kind == 3 and size > 1:
        begin, end = np.sort(rng.choice(size + 1, 2, replace=False))
        order[begin:end] = order[begin:end][::-1].copy()
    elif size > 1:
        giver, taker = order[rng.choice(size, 2, replace=False)] + num_domains + 2
        moved = min(int(rng.choice(STEPS)), int(genome[giver]) - 1)
        genome[giver] -= moved
        genome[taker] += moved
