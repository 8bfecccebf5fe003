"""What the commands sample: the flags, and the world and workloads that they stand for."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from calibration.cases.case import Granularity, PlacementCase
from calibration.cases.sampler import Purpose, sample_cases
from calibration.cases.settings import Regime, WorkloadFamily
from calibration.commands.ending import UsageError
from calibration.commands.flags import (
    DEFAULT_MODEL,
    MODELS,
    add_flag,
    add_world_flags,
    count,
    counts,
    least_and_most,
    names,
    seed,
    world_from_flags,
)
from calibration.fit.fitted_for import FittedFor
from des import SCHEDULES, Topology, build_workload
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
                "--model must be one, as factors are fitted for one model; got "
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
        """What is drawn, in one line."""
        family, regime = self.family, self.regime
        least, most = family.num_microbatches
        domains = ", ".join(map(str, regime.num_domains or (self.topology.num_domains,)))
        return (
            f"{self.num} placements of {', '.join(family.models)} on {domains} domains of "
            f"{self.network} (worlds {regime.worlds}, one NPU a {_NPU[regime.granularity]}, "
            f"endpoints {self.topology.transport.endpoints}), {least}-{most} microbatches, "
            f"{', '.join(family.schedules)}, seed {self.seed}"
        )


_NPU: dict[Granularity, str] = {"domain": "domain", "gpu": "GPU"}


def add_sampling_flags(parser: argparse.ArgumentParser, *, num_samples: int) -> None:
    """Add what placements are drawn from."""
    add_world_flags(parser)
    sizes = "of which the first belongs to the mark of the factors"
    flags: tuple[tuple[str, Callable[[str], object], str | None, str], ...] = (
        ("--model", names, DEFAULT_MODEL, f"of {MODELS}"),
        ("--num-layers", count, None, "divide models into that many equal layers"),
        ("--samples", count, str(num_samples), "placements to draw"),
        ("--seed", seed, "0", "seed of the draw"),
        ("--microbatches", least_and_most, "8,64", "least and most microbatches"),
        ("--microbatch-sizes", counts, "1,2,4", f"sequences of a microbatch, {sizes}"),
        ("--sequence-lengths", counts, "4096,2048", f"tokens of a sequence, {sizes}"),
        ("--schedules", names, "gpipe,1f1b,interleaved_1f1b,zb_h1", f"of {', '.join(SCHEDULES)}"),
        ("--recomputation", str, "flash", f"one of {', '.join(get_args(Recomputation))}"),
    )
    for flag in flags:
        add_flag(parser, *flag)


def add_worlds_flags(parser: argparse.ArgumentParser) -> None:
    """Add worlds other than the network itself."""
    parser.add_argument(
        "--worlds",
        choices=get_args(Worlds),
        default="given",
        help="given: epochs of the network; equal, drawn: domains like those of the network, every "
        "two joined by equal links or by links of their own (default: %(default)s)",
    )
    add_flag(parser, "--num-domains", counts, None, "of worlds that are not given, such as 3,5,10")


def placements_to_measure(arguments: argparse.Namespace) -> Placements:
    """Read the flags of `add_sampling_flags`, and those of `add_worlds_flags` if there are such."""
    given = vars(arguments)
    return Placements(
        network=Path(arguments.network).stem,
        topology=world_from_flags(arguments),
        family=WorkloadFamily(
            models=arguments.model,
            num_layers=arguments.num_layers,
            num_microbatches=arguments.microbatches,
            microbatch_sizes=arguments.microbatch_sizes,
            sequence_lengths=arguments.sequence_lengths,
            recomputation=arguments.recomputation,
            schedules=arguments.schedules,
        ),
        regime=Regime(
            worlds=given.get("worlds", "given"),
            num_domains=given.get("num_domains") or (),
            granularity=arguments.granularity,
        ),
        num=arguments.samples,
        seed=arguments.seed,
    )
