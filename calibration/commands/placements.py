"""Flags of the commands that sample cases, and their world and workloads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from calibration.cases.case import Granularity, PlacementCase
from calibration.cases.sampler import Purpose, sample_cases
from calibration.cases.settings import Regime, WorkloadFamily
from calibration.commands.flags import (
    DEFAULT_MODEL,
    WorldFlags,
    require_counts,
    require_least_and_most,
    require_names,
)
from calibration.fit.fitted_for import FittedFor
from des import SCHEDULES, Topology, build_workload
from des.base.checks import require_count, require_seed
from des.base.command import UsageError
from des.base.flags import option
from des.job.models import MODEL_HELP
from des.job.transformer import Recomputation

Worlds = Literal["given", "equal", "drawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placements:
    """Placements to draw: the first ``num`` of a seed on epochs of a network."""

    network: str
    topology: Topology
    family: WorkloadFamily
    regime: Regime
    num: int
    seed: int

    def draw(self, purpose: Purpose) -> list[PlacementCase]:
        """Draw them; those to check by are never among those to fit to."""
        return sample_cases(
            self.topology,
            self.family,
            self.num,
            seed=self.seed,
            regime=self.regime,
            purpose=purpose,
        )

    def fitted_for(self) -> FittedFor:
        """Make the mark of factors that are fitted to them.

        It names the model with the first of the microbatch sizes and sequence lengths; the others
        make messages of other sizes, by which bandwidths and latencies can be told apart.

        Raises
        ------
        UsageError
            If there are several models.
        """
        if len(self.family.models) != 1:
            raise UsageError(
                "--model takes a single model: factors are per model; got "
                f"{', '.join(self.family.models)}"
            )
        workload = build_workload(
            self.family.models[0],
            num_layers=self.family.num_layers,
            microbatch_size=self.family.microbatch_sizes[0],
            sequence_length=self.family.sequence_lengths[0],
            recomputation=self.family.recomputation,
        )
        return FittedFor.of(workload, self.topology, network=self.network)

    @property
    def title(self) -> str:
        """Summary of the distribution of cases, in one line."""
        family, regime = self.family, self.regime
        least, most = family.num_microbatches
        domains = ", ".join(map(str, regime.num_domains or (self.topology.num_domains,)))
        return (
            f"{self.num} placements of {', '.join(family.models)} on {domains} domains of "
            f"{self.network} (worlds {regime.worlds}, one NPU per {_NPU[regime.granularity]}, "
            f"endpoints {self.topology.transport.endpoints}), {least}-{most} microbatches, "
            f"{', '.join(family.schedules)}, seed {self.seed}"
        )


_NPU: dict[Granularity, str] = {"domain": "domain", "gpu": "GPU"}


_MARKED = "the first of which is recorded with the factors"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingFlags(WorldFlags):
    """Settings of the distribution of placements."""

    model: tuple[str, ...] = option((DEFAULT_MODEL,), f"each {MODEL_HELP}", check=require_names)
    num_layers: int | None = option(
        None, "number of equal layers; none: those of each model", check=require_count
    )
    samples: int = option(128, "placements to draw", check=require_count)
    seed: int = option(0, "seed of the draw", check=require_seed)
    microbatches: tuple[int, ...] = option(
        (8, 64), "least and most microbatches", check=require_least_and_most
    )
    microbatch_sizes: tuple[int, ...] = option(
        (1, 2, 4), f"sequences of a microbatch, {_MARKED}", check=require_counts
    )
    sequence_lengths: tuple[int, ...] = option(
        (4096, 2048), f"tokens of a sequence, {_MARKED}", check=require_counts
    )
    schedules: tuple[str, ...] = option(
        ("gpipe", "1f1b", "interleaved_1f1b", "zb_h1"),
        f"of {', '.join(SCHEDULES)}",
        check=require_names,
    )
    recomputation: Recomputation = option("flash", "activations kept for the backward pass")

    def placements(
        self, *, worlds: Worlds = "given", num_domains: tuple[int, ...] = ()
    ) -> Placements:
        """Make what the flags describe, in these worlds."""
        return Placements(
            network=Path(self.network).stem,
            topology=self.read_topology(),
            family=WorkloadFamily(
                models=self.model,
                num_layers=self.num_layers,
                num_microbatches=(self.microbatches[0], self.microbatches[-1]),
                microbatch_sizes=self.microbatch_sizes,
                sequence_lengths=self.sequence_lengths,
                recomputation=self.recomputation,
                schedules=self.schedules,
            ),
            regime=Regime(worlds=worlds, num_domains=num_domains, granularity=self.granularity),
            num=self.samples,
            seed=self.seed,
        )
