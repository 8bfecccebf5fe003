"""Placing a request: the instance of its prompt, and that of its tokens.

Ties go to the first of a list. The rules follow splitwise-sim's schedulers (Patel et al., ISCA
2024); `random` and `kv_random` are ours.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, cycle
from operator import attrgetter

import numpy as np

from des.base.checks import require_known
from scenarios.reproduce.serving_oracles.pool_instance import PoolInstance
from scenarios.reproduce.serving_oracles.pool_works import RequestState

_DUE = attrgetter("due_tokens")
_PROMISED = attrgetter("promised_bytes")
Places = tuple[PoolInstance, PoolInstance]
"""Instances of the prompt and of the tokens."""
Choose = Callable[[], PoolInstance]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSettings:
    """Settings of routers.

    ``counts_done_only`` is a fault of a reference program: ``kv_token_jsq`` subtracts what is done
    from the tokens due, and adds nothing, so the instance that has done most gets everything.
    """

    threshold_tokens: int = 0
    counts_done_only: bool = False
    seed: int = 0


@dataclass(slots=True, kw_only=True)
class PlainRouter:
    """One rule for the prompt, and one for the tokens or the same place."""

    choose_prompt: Choose
    choose_token: Choose | None
    adds_due: bool = True

    def place(self, state: RequestState) -> Places:
        """Choose, and add the tokens of the request to those due."""
        first = self.choose_prompt()
        second = first if self.choose_token is None else self.choose_token()
        if self.adds_due:
            first.due_tokens += state.prompt.cost
            second.due_tokens += 1
        return first, second

    def release(self, instance: PoolInstance) -> None:
        """Take no note: nothing was lent."""


@dataclass(slots=True, kw_only=True)
class MixedPoolRouter:
    """Prompt pool, token pool, and instances lent by both to a mixed pool while they are needed."""

    threshold_tokens: int
    prompts: list[PoolInstance]
    tokens: list[PoolInstance]
    mixed: list[PoolInstance] = field(default_factory=list)

    def place(self, state: RequestState) -> Places:
        """Place by tokens due and memory promised; lend an instance where a pool is exhausted."""
        cost = state.prompt.cost
        need = state.prompt_bytes + state.token.memory_bytes
        first, second = self._prompt_place(cost), self._token_place(need)
        if first is None and self.tokens:
            first = self._lend(self.tokens, min(self.tokens, key=_DUE))
        if second is None and self.prompts:
            second = self._lend(self.prompts, min(self.prompts, key=_PROMISED))
        if first is None or second is None:
            first = second = min(chain(self.tokens, self.prompts, self.mixed), key=_DUE)
        if first is second:
            first.promised_bytes += need
        else:
            first.promised_bytes += state.prompt_bytes
            second.promised_bytes += need
        first.due_tokens += cost
        second.due_tokens += 1
        return first, second

    def release(self, instance: PoolInstance) -> None:
        """Give an idle instance of the mixed pool back to its own pool."""
        if instance in self.mixed:
            self.mixed.remove(instance)
            (self.prompts if instance.pool == "prompt" else self.tokens).append(instance)

    def _prompt_place(self, cost: int) -> PoolInstance | None:
        for members in (self.prompts, self.mixed):
            if members:
                one = min(members, key=_DUE)
                if not one.waiting or one.due_tokens + cost <= self.threshold_tokens:
                    return one
        return None

    def _token_place(self, need: float) -> PoolInstance | None:
        for members in (self.tokens, self.mixed):
            if members:
                one = min(members, key=_PROMISED)
                if one.promised_bytes + need < one.capacity_bytes:
                    return one
        return None

    def _lend(self, pool: list[PoolInstance], instance: PoolInstance) -> PoolInstance:
        pool.remove(instance)
        self.mixed.append(instance)
        return instance


def _at_random(instances: Sequence[PoolInstance], settings: RouterSettings) -> Choose:
    rng = np.random.default_rng(settings.seed)
    return lambda: instances[int(rng.integers(len(instances)))]


_CHOICES: Mapping[str, Callable[[Sequence[PoolInstance], RouterSettings], Choose]] = {
    "random": _at_random,
    "round_robin": lambda instances, _: partial(next, cycle(instances)),
    "jsq": lambda instances, _: partial(min, instances, key=lambda one: len(one.present)),
    "token_jsq": lambda instances, _: partial(min, instances, key=_DUE),
}
ROUTER_NAMES = (*_CHOICES, *(f"kv_{name}" for name in _CHOICES), "mixed_pool")
"""Names of routers; those with ``kv_`` have a prompt pool and a token pool."""


def make_router(
    name: str, instances: Sequence[PoolInstance], settings: RouterSettings
) -> PlainRouter | MixedPoolRouter:
    """Make a router over instances.

    Raises
    ------
    ValueError
        If there is no router of that name, or a pool that it needs has no instance.
    """
    require_known("router: must be a known name, got", name, ROUTER_NAMES)
    if name in _CHOICES:
        return PlainRouter(choose_prompt=_CHOICES[name](instances, settings), choose_token=None)
    prompts = [one for one in instances if one.pool == "prompt"]
    tokens = [one for one in instances if one.pool == "token"]
    if not prompts or not tokens:
        raise ValueError(
            f"router {name}: must have at least 1 instance in each of the pools prompt and token, "
            f"got {len(prompts)} and {len(tokens)}"
        )
    if name == "mixed_pool":
        return MixedPoolRouter(
            threshold_tokens=settings.threshold_tokens, prompts=prompts, tokens=tokens
        )
    choice = _CHOICES[name.removeprefix("kv_")]
    return PlainRouter(
        choose_prompt=choice(prompts, settings),
        choose_token=choice(tokens, settings),
        adds_due=not (settings.counts_done_only and name == "kv_token_jsq"),
    )
