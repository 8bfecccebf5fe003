"""README of a launch: stages on hosts, how to start, borders, and what the trainer cannot take.

Borders are pairs of sites that exchange messages; NCCL has settings for them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Template

from agents.decision.bound_plan import BoundPlan
from agents.judge.nccl_sockets import DEFAULT_CHUNK_BYTES, NcclSettings, SiteBorder
from agents.trainers.table import trainer_named
from scenarios.iteration.launch_folder import LaunchHost


def nccl_text(steps_s: Sequence[float]) -> str:
    """Say what NCCL's window does to a step, as it comes and with the settings of a launch."""
    as_it_comes_s, own_s = steps_s
    return (
        f"{as_it_comes_s:.6g} s a step over NCCL's sockets as it comes, {own_s:.6g} s with "
        "nccl.env (not measured)"
    )


_EXECUTABLE = (".sh", ".sbatch")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Files of a launch by name, and what they say of the plan.

    Attributes
    ----------
    step_s
        Time of a step of the plan that the files say. [s]
    nccl_steps_s
        The same over NCCL's sockets, as it comes and with the settings: a formula. [s]
    unsaid
        Fields of the plan that the trainer's files do not say as they are.
    """

    bound: BoundPlan
    files: Mapping[str, str]
    step_s: float
    nccl_steps_s: tuple[float, float]
    unsaid: tuple[str, ...]

    @property
    def executables(self) -> tuple[str, ...]:
        """Names of the files that are programs."""
        return tuple(name for name in self.files if name.endswith(_EXECUTABLE))


@dataclass(frozen=True, kw_only=True)
class LaunchPage:
    """Facts of a launch, as a page for those who start it."""

    launch: Launch
    ranks: Mapping[str, Sequence[LaunchHost]]
    borders: Sequence[SiteBorder]
    settings: NcclSettings
    has_placeholders: bool

    def text(self, template: str) -> str:
        """Return the page, in Markdown, by its template."""
        workload = self.launch.bound.workload
        return Template(template).substitute(
            model=workload.name,
            trainer=trainer_named(self.launch.bound.trainer).title,
            layers=workload.num_layers,
            tokens=f"{workload.tokens_per_iteration:,}",
            step=f"{self.launch.bound.step_s:.6g}",
            stages="\n".join(self._stages()),
            hosts="\n".join(self._hosts()),
            nccl=nccl_text(self.launch.nccl_steps_s),
            borders="\n".join(self._border_rows()) or "| none |  |  |  |  |  |  |",
            said="\n".join(self._list_said()),
        )

    def _stages(self) -> Iterator[str]:
        for replica, stages in enumerate(self.launch.bound.plan.stages_of_replicas):
            devices = dict.fromkeys((one.domain, one.device) for one in stages)
            for rank, device in enumerate(devices):
                layers = ", ".join(
                    f"{one.first_layer}-{one.first_layer + one.num_layers - 1}"
                    for one in stages
                    if (one.domain, one.device) == device
                )
                site = self.launch.bound.topology.domains[device[0]].name
                yield f"| {replica} | {rank} | {site} | {layers} |"

    def _hosts(self) -> Iterator[str]:
        for folder, hosts in self.ranks.items():
            for site in dict.fromkeys(host.site for host in hosts):
                ranks = ", ".join(str(host.rank) for host in hosts if host.site == site)
                yield f"- `{folder}hosts.txt`: node ranks {ranks} are in {site}."
        if self.has_placeholders:
            yield (
                "- **Names of hosts are placeholders**, `<site>-<n>`: write the plan again with "
                "`--hosts FILE`, or replace them in `hosts.txt`, `borders.tsv` and `*.sbatch`."
            )

    def _border_rows(self) -> Iterator[str]:
        for one in self.borders:
            default, own = (
                one.pair_bytes_per_s(chunk) * 8e-9
                for chunk in (DEFAULT_CHUNK_BYTES, self.settings.chunk_bytes)
            )
            yield (
                f"| {one.source} | {one.target} | {one.bandwidth_bytes_per_s * 8e-9:.4g} | "
                f"{one.round_trip_s * 1e3:.4g} | {one.in_flight_bytes / 1e6:.4g} | "
                f"{default:.3g} | {own:.3g} |"
            )

    def _list_said(self) -> Iterator[str]:
        difference = self.launch.step_s / self.launch.bound.step_s - 1.0
        if self.launch.step_s == self.launch.bound.step_s:
            yield "What these files say takes the time of the plan, to the last bit."
        else:
            yield f"What these files say takes {self.launch.step_s!r} s a step, {difference:+.3%}."
        yield from (f"- {one}" for one in self.launch.unsaid)
        mode = self.launch.bound.plan.synchronisation
        if "" not in self.ranks:
            yield (
                f"- Changes of {mode.bits_per_value:g} bits are those of parameters in "
                f"{'BF16' if mode.bits_per_value == 16.0 else 'FP32'} (`training.dtype`)."
            )
