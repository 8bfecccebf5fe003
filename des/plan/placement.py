"""Placements of layers in domains, and the stages they form."""

import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby, repeat, starmap
from operator import itemgetter

from des.base.arithmetic import even_share
from des.base.checks import MOST_ITEMS
from des.job.workload import Workload, total
from des.world.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Consecutive layers on one device of one domain; ``index`` counts from the input.

    ``device`` counts the devices of the domain, of which there is one unless the domain is a
    pipeline of its own.
    """

    index: int
    domain: int
    first_layer: int
    num_layers: int
    device: int = 0

    @property
    def layers(self) -> slice:
        """The stage's layers, as a slice of the workload's."""
        return slice(self.first_layer, self.first_layer + self.num_layers)

    def total(self, sums_before: Sequence[float]) -> float:
        """Sum of one of `Workload.sums_before` over the stage's layers."""
        return total(sums_before, self.first_layer, self.num_layers)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Domain of every layer, by position of the domain in the topology; any pattern is allowed.

    ``stage_layers`` has, of every maximal run of layers in one domain, the layers of each stage
    where there are several, or nothing where they are as even as can be; empty: everywhere so.
    """

    domain_of_layer: tuple[int, ...]
    stage_layers: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        self._check_domains()
        if not self.stage_layers:
            return
        runs = [stage.num_layers for stage in self.stages]
        if len(self.stage_layers) != len(runs) or any(
            own and (len(own) < 2 or min(own) < 1 or sum(own) != run)
            for own, run in zip(self.stage_layers, runs, strict=True)
        ):
            raise ValueError(
                "placement: stage_layers must add up to the layers of each of the runs "
                f"{', '.join(map(str, runs))}; got {self.stage_layers}"
            )

    def _check_domains(self) -> None:
        if not self.domain_of_layer:
            raise ValueError("placement: domain_of_layer must hold at least one layer, got none")
        if set(map(type, self.domain_of_layer)) == {int} and min(self.domain_of_layer) >= 0:
            return  # as good as always, and much quicker to see than layer by layer
        for layer, domain in enumerate(self.domain_of_layer):
            if isinstance(domain, bool) or not isinstance(domain, int) or domain < 0:
                raise ValueError(
                    f"placement: layer {layer} must name a domain by a whole number of at least 0, "
                    f"got {domain!r}"
                )

    @classmethod
    def contiguous(cls, domains: Sequence[int], num_layers: Sequence[int]) -> "Placement":
        """Give ``num_layers[i]`` layers in a row to ``domains[i]``; a count of 0 skips it."""
        runs = zip(domains, num_layers, strict=True)
        return cls(domain_of_layer=tuple(chain.from_iterable(starmap(repeat, runs))))

    @classmethod
    def of_stages(cls, stages: Sequence[tuple[int, int]]) -> "Placement":
        """Place stages in order, each a domain and its number of layers.

        Layers of a run that are as even as can be, the larger counts first, are not written out.

        Examples
        --------
        >>> str(Placement.of_stages([(0, 3), (0, 4), (1, 5), (1, 4)]))
        '0*3+4,1*9'
        """
        runs = [
            (domain, tuple(num_layers for _, num_layers in run))
            for domain, run in groupby(stages, key=itemgetter(0))
        ]
        even = [
            tuple(even_share(sum(own), len(own), part) for part in range(len(own)))
            for _, own in runs
        ]
        given = tuple(() if own == each else own for (_, own), each in zip(runs, even, strict=True))
        placement = cls.contiguous([domain for domain, _ in runs], [sum(own) for _, own in runs])
        return replace(placement, stage_layers=given) if any(given) else placement

    @classmethod
    def even(cls, num_domains: int, num_layers: int) -> "Placement":
        """Split layers evenly over all domains in order; the first ones take the remainder.

        Examples
        --------
        >>> [stage.num_layers for stage in Placement.even(3, 80).stages]
        [27, 27, 26]
        """
        counts = [even_share(num_layers, num_domains, domain) for domain in range(num_domains)]
        return cls.contiguous(range(num_domains), counts)

    @classmethod
    def parse(cls, text: str, domain_names: Sequence[str] = ()) -> "Placement":
        """Read ``"0*28,1*26,2*26"``, ``"0,0,1,2"`` or, with names, ``"East*28,West*52"``.

        ``"0*9+10+9"`` has the layers of each of three stages.

        Raises
        ------
        ValueError
            If an item is not a domain, or a domain times a count of at least 1, or two items with
            counts side by side are of one domain: they would be one stage.
        """
        domain_of_layer: list[int] = []
        counted: int | None = None
        stage_layers: list[tuple[int, ...]] = []
        bracketed = re.fullmatch(r"\s*\[(.*)\]\s*", text)
        for item in (bracketed[1] if bracketed else text).split(","):
            match = re.fullmatch(r"\s*(.+?)\s*(?:\*\s*([0-9]{1,9}(?:\+[0-9]{1,9})*)\s*)?", item)
            domain = None if match is None else _parse_domain(match[1], domain_names)
            own = tuple(map(int, (match[2] or "1").split("+"))) if match is not None else ()
            count = sum(own) if all(own) else 0
            if domain is None or not 1 <= count <= MOST_ITEMS:
                known = f" or a name of {', '.join(domain_names)}" if domain_names else ""
                raise ValueError(
                    f"placement: each item must be DOMAIN or DOMAIN*COUNT, such as 0*28, with a "
                    f"domain's number{known} and a count from 1 to {MOST_ITEMS}; "
                    f"got {reprlib.repr(item)}"
                )
            has_count = match is not None and match[2] is not None
            if domain_of_layer[-1:] == [domain] and (has_count or counted == domain):
                raise ValueError(
                    "placement: layers side by side in one domain must be one item, such as 1*8, "
                    f"or 1*4+4 for two stages; got {reprlib.repr(item)} next to one of its domain"
                )
            counted = domain if has_count else None
            domain_of_layer += [domain] * count
            stage_layers.append(own if len(own) > 1 else ())
        return cls(
            domain_of_layer=tuple(domain_of_layer),
            stage_layers=tuple(stage_layers) if any(stage_layers) else (),
        )

    def __str__(self) -> str:
        """Write it as `parse` reads it, such as ``0*28,1*26,2*26``."""
        return ",".join(
            f"{stage.domain}*{text}"
            for stage, text in zip(self.stages, self.run_texts, strict=True)
        )

    @property
    def run_texts(self) -> tuple[str, ...]:
        """Layers of each run of layers in a domain as text: ``28``, or ``9+10+9`` of its stages."""
        explicit = self.stage_layers or ((),) * len(self.stages)
        return tuple(
            "+".join(map(str, own)) if own else str(stage.num_layers)
            for stage, own in zip(self.stages, explicit, strict=True)
        )

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """A stage for every maximal run of layers in one domain, from the input to the output."""
        stages: list[Stage] = []
        first_layer = 0
        for domain, run in groupby(self.domain_of_layer):
            num_layers = len(list(run))
            stages.append(
                Stage(
                    index=len(stages),
                    domain=domain,
                    first_layer=first_layer,
                    num_layers=num_layers,
                )
            )
            first_layer += num_layers
        return tuple(stages)

    @property
    def num_borders(self) -> int:
        """Places where consecutive layers lie in different domains."""
        return len(self.stages) - 1

    def check_against(self, topology: Topology, workload: Workload) -> None:
        """Refuse a placement of another number of layers or on domains that do not exist.

        Raises
        ------
        ValueError
            Naming what is allowed and what came.
        """
        if len(self.domain_of_layer) != workload.num_layers:
            raise ValueError(
                f"placement: domain_of_layer must hold one domain for each of the "
                f"{workload.num_layers} layers of {workload.name}, got {len(self.domain_of_layer)}"
            )
        unknown = max(self.domain_of_layer)
        if unknown >= topology.num_domains:
            layer = self.domain_of_layer.index(unknown)
            known = ", ".join(f"{name} {index}" for name, index in topology.index_of.items())
            raise ValueError(
                f"placement: layer {layer} must be on one of the domains {known}; got {unknown}"
            )


def device_numbers(stages: Sequence[Stage]) -> tuple[int, ...]:
    """Number the devices of stages from 0, in the order in which they come up."""
    number: dict[tuple[int, int], int] = {}
    return tuple(number.setdefault((stage.domain, stage.device), len(number)) for stage in stages)


def cross_domain_bytes(workload: Workload, placement: Placement) -> float:
    """Bytes of one iteration that leave a domain: activations forward, gradients back.

    Each counts once, however many links its route has.
    """
    return 2 * placement.num_borders * workload.num_microbatches * workload.message_bytes


def _parse_domain(text: str, domain_names: Sequence[str]) -> int | None:
    if text in domain_names:
        return list(domain_names).index(text)
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None
