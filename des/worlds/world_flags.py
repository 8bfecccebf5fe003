"""Flags of a model and of the times of its layers, and the world that they are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from des.base.checks import prefixed_errors
from des.base.command import UsageError
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.job.models import MODEL_HELP, PRECISION_HELP, build_workload

with lazy_imports(__name__):
    from des.devices import gpu_kinds
    from des.job.workload import Workload
    from des.world import kernel_figures
    from des.world.domain import Domain
    from des.world.files import profile_files
    from des.world.topology import Topology
    from des.worlds import reading


@dataclass(frozen=True, kw_only=True)
class NetworkFlag:
    """Flag of a world; no base here has slots, as a configuration has several."""

    network: str = option("east_central_west", "topology file, or a shipped world", is_file=True)


@dataclass(frozen=True, kw_only=True)
class ModelFlags:
    """Flags of a model."""

    model: str = option("llama2_70b", MODEL_HELP, is_file=True)
    num_layers: int | None = option(None, "number of layers", default_text="the model's")
    sequence_length: int = option(4096, "tokens of a sequence")

    def workload(self, num_microbatches: int) -> Workload:
        """Make the workload of the model in microbatches of one sequence."""
        return build_workload(
            self.model,
            num_layers=self.num_layers,
            num_microbatches=num_microbatches,
            sequence_length=self.sequence_length,
        )


@dataclass(frozen=True, kw_only=True)
class LayerFlags(ModelFlags):
    """Flags of a model and of the source of its layers' times."""

    precision: str = option("bf16", PRECISION_HELP)
    profile: tuple[str, ...] = option(
        (),
        "file of measured layer times, CSV or JSON, for all domains, or NAME=FILE for some, with "
        "commas; none: as the network has it",
    )
    profile_gpu: str | None = option(
        None, "GPU whose times of the profile are taken; none: the domain's model"
    )
    extrapolate: bool = option(
        False, "scale times of a profile outside its points as shapes scale, not refuse them"
    )

    def world(self, network: str) -> Topology:
        """Read a world with the layer times of the flags, see `read_world`."""
        return read_world(
            network, self.profile, gpu=self.profile_gpu, extrapolates=self.extrapolate
        )

    def workload(
        self,
        num_microbatches: int,
        microbatch_size: int | None = None,
        *,
        recomputation: str = "flash",
        attention: str | None = None,
        gradient_precision: str = "bf16",
    ) -> Workload:
        """Make the workload of the model, by default in microbatches of one sequence."""
        return build_workload(
            self.model,
            num_layers=self.num_layers,
            num_microbatches=num_microbatches,
            microbatch_size=1 if microbatch_size is None else microbatch_size,
            sequence_length=self.sequence_length,
            recomputation=recomputation,
            attention=attention,
            gradient_precision=gradient_precision,
            precision=self.precision,
        )


def read_world(
    network: str, entries: Sequence[str], *, gpu: str | None, extrapolates: bool
) -> Topology:
    """Read a world, with measured layer times in all domains or in those that are named.

    Where layer times were a fraction of the peak the whole time of the GPUs is then the job's.

    Raises
    ------
    UsageError
        If an entry names no domain, or flags of profiles are given without one.
    ValueError
        If a file is no world or no profile, or lacks the GPU.
    """
    topology = reading.read_topology(network)
    if not entries:
        for name, value in (("profile_gpu", gpu), ("extrapolate", extrapolates)):
            if value:
                raise UsageError(f"{name} needs a profile, got none")
        return topology
    files = _files(topology, entries)
    return replace(
        topology,
        domains=tuple(
            _profiled(one, files[one.name], gpu, extrapolates) if one.name in files else one
            for one in topology.domains
        ),
    )


def _files(topology: Topology, entries: Sequence[str]) -> dict[str, str]:
    """File of each domain by name."""
    names = list(topology.index_of)
    if len(entries) == 1 and "=" not in entries[0]:
        return dict.fromkeys(names, entries[0])
    files: dict[str, str] = {}
    for entry in entries:
        name, sign, path = entry.partition("=")
        if not sign or name not in names or name in files:
            raise UsageError(
                f"profile must be one file, or NAME=FILE once for domains of {', '.join(names)}; "
                f"got {entry!r}"
            )
        files[name] = path
    return files


def _profiled(domain: Domain, path: str, gpu: str | None, extrapolates: bool) -> Domain:
    with prefixed_errors(f"domain {domain.name}: profile: "):
        profile = profile_files.read_layer_profile(
            path, gpu=gpu or _model_of(domain), extrapolates=extrapolates
        )
    if domain.kernels is not None:
        return replace(domain, profile=profile)
    return replace(
        domain, profile=profile, kernels=kernel_figures.FITTED_KERNELS, attainable_fraction=1.0
    )


def _model_of(domain: Domain) -> str:
    """Name of the GPU model that a domain names, or whose peak and memory bandwidth it has."""
    if domain.gpu_kind is not None:
        return domain.gpu_kind
    own = domain.gpu_peak_flops_per_s, domain.gpu_memory_bandwidth_bytes_per_s
    for name, model in gpu_kinds.GPU_KINDS.items():
        if own == (model.peak_flops_per_s, model.memory_bandwidth_bytes_per_s):
            return name
    raise ValueError(
        "profile_gpu must name the GPU whose times are taken, as the domain's figures are those "
        "of no known model; got none"
    )
