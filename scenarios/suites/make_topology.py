"""Write a topology file: one of the presets, or domains drawn on a plane."""

import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from des import UniformLaw
from des.base.checks import prefixed_errors, require_one_of, system_errors
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command_given
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, required, to_dict
from des.base.lazy import lazy_imports
from des.base.quantities import (
    BANDWIDTH_BYTES_PER_S,
    TIME_S,
    Units,
    parse_quantity,
    require_in_reach,
)
from des.worlds.generator import PlaneWorlds
from des.worlds.presets import PRESETS, Preset

with lazy_imports(__name__):
    from des.world.files import topology_writer


PROG = "python -m scenarios.make_topology"
_EXAMPLES = f"""\
examples:
  python -m scenarios.make_topology --num-domains 10 --seed 0 --out ten.yaml
  python -m scenarios.make_topology --num-domains 6 --price-usd-per-gb 0.05 \\
      --gpu-price-usd-per-hour 2 --out priced.yaml
  python -m scenarios.make_topology --preset east_west_hubs --out east_west_hubs.yaml

exit codes: 0 done; 2 a flag is wrong, or the file cannot be written;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of a topology file."""

    preset: str | None = option(None, f"one of {', '.join(PRESETS)}; has no other flags but --out")
    num_domains: int | None = option(None, "number of domains to draw; links join every two")
    seed: int = option(0, "seed of the draw")
    mean_bandwidth: str = option("5Gbps", "mean of the links, which spread from 0.3 to 2 times it")
    lowest_latency: str = option("5ms", "latency at distance 0")
    highest_latency: str = option("120ms", "latency of a link over the whole diagonal")
    bandwidth_fluctuation: float = option(
        0.3, "bandwidth fluctuation from epoch to epoch, a fraction"
    )
    latency_jitter: float = option(0.2, "latency jitter from epoch to epoch, a fraction")
    price_usd_per_gb: float | None = option(None, "mean of the prices of the links")
    gpu_price_usd_per_hour: float | None = option(None, "price of each GPU")
    out: Path = required("file to write, .yaml or .yml; a missing folder is made")


@command_given(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config, given: frozenset[str]) -> None:
    """Run the command on its settings."""
    preset = shipped_world(config, given) if config.num_domains is None else drawn(config)
    topology = preset.topology
    # The file that an error names may be a temporary neighbour.
    with system_errors(f"{config.out}: cannot be written", UsageError):
        topology_writer.write_topology(
            config.out, topology, comment=preset.comment, makes_folder=True
        )
    DOCUMENT.add(
        out=config.out,
        domains=[domain.name for domain in topology.domains],
        num_links=len(topology.links),
    )
    sys.stdout.write(
        f"{topology.num_domains} domains, {len(topology.links)} links (each direction one)\n"
        f"written: {config.out}\n"
    )


def shipped_world(config: Config, given: frozenset[str]) -> Preset:
    """Make the requested preset; ``given`` are the flags that came with it.

    Raises
    ------
    UsageError
        If there is no such preset, or flags came with it that it does not have.
    """
    if config.preset is None:
        raise UsageError(f"{PROG}: one of preset and num_domains must be given, got neither")
    require_one_of(PROG, "preset", config.preset, PRESETS)
    surplus = sorted(given - {"preset", "out"})
    if surplus:
        raise UsageError(f"{PROG}: preset has no other flags but out, got {', '.join(surplus)}")
    return PRESETS[config.preset]()


def drawn(config: Config) -> Preset:
    """Draw the world that the flags describe.

    Raises
    ------
    ValueError
        If a flag is out of range, or a preset was given as well.
    """
    if config.num_domains is None or config.preset is not None:
        raise UsageError(f"{PROG}: one of preset and num_domains must be given, got both")
    if config.seed < 0:
        raise UsageError(f"{PROG}: seed must be at least 0, got {config.seed}")
    worlds = PlaneWorlds(
        num_domains=config.num_domains,
        mean_bandwidth_bytes_per_s=_quantity(config, "mean_bandwidth", BANDWIDTH_BYTES_PER_S),
        lowest_latency_s=_quantity(config, "lowest_latency", TIME_S),
        highest_latency_s=_quantity(config, "highest_latency", TIME_S),
        mean_price_usd_per_gb=config.price_usd_per_gb,
        gpu_price_usd_per_hour=config.gpu_price_usd_per_hour,
        dynamics=UniformLaw(
            bandwidth_fluctuation=config.bandwidth_fluctuation,
            latency_jitter=config.latency_jitter,
        ),
    )
    return Preset(
        comment=f"Domains drawn on a plane; made up, not measured. Written by:\n{_flags(config)}",
        topology=worlds.draw(np.random.default_rng(config.seed)),
    )


def _quantity(config: Config, name: str, units: Units) -> float:
    with prefixed_errors(f"{PROG}: {name} ", UsageError):
        given = getattr(config, name)
        return require_in_reach(parse_quantity(given, units), given)


def _flags(config: Config) -> str:
    """Write the command that makes the same world again, every flag spelled out but ``--out``."""
    values = to_dict(config)
    flags = [
        f"--{name.replace('_', '-')} {value}"
        for name, value in values.items()
        if value is not None and name != "out"
    ]
    lines = textwrap.wrap(
        " ".join([PROG, *flags]), 90, break_long_words=False, break_on_hyphens=False
    )
    return " \\\n    ".join(lines)
