"""README of a launch: stages on hosts, how to start, borders, and what the trainer cannot take."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Template

from agents.decision.bound_plan import BoundPlan
from agents.trainers.table import trainer_named
from scenarios.iteration.launch_folder import LaunchHost
from scenarios.launch.borders import DEFAULT_CHUNK_BYTES, NcclSettings, SiteBorder


def nccl_text(steps_s: Sequence[float]) -> str:
    """Say what NCCL's window does to a step, as it comes and with the settings of a launch."""
    as_it_comes_s, own_s = steps_s
    return (
        f"{as_it_comes_s:.6g} s a step over NCCL's sockets as it comes, {own_s:.6g} s with "
        "nccl.env (not measured)"
    )


@dataclass(frozen=True, kw_only=True)
class LaunchPage:
    """Facts of a launch, as a page for those who start it.

    ``nccl_steps_s`` are times of a step over NCCL as it comes and with the settings.
    """

    bound: BoundPlan
    ranks: Mapping[str, Sequence[LaunchHost]]
    borders: Sequence[SiteBorder]
    settings: NcclSettings
    nccl_steps_s: Sequence[float]
    step_s: float
    unsaid: Sequence[str]
    has_placeholders: bool

    def text(self, template: str) -> str:
        """Return the page, in Markdown, by its template."""
        workload = self.bound.workload
        return Template(template).substitute(
            model=workload.name,
            trainer=trainer_named(self.bound.trainer).title,
            layers=workload.num_layers,
            tokens=f"{workload.tokens_per_iteration:,}",
            step=f"{self.bound.step_s:.6g}",
            stages="\n".join(self._stages()),
            hosts="\n".join(self._hosts()),
            nccl=nccl_text(self.nccl_steps_s),
            borders="\n".join(self._border_rows()) or "| none |  |  |  |  |  |  |",
            said="\n".join(self._said()),
        )

    def _stages(self) -> Iterator[str]:
        for replica, stages in enumerate(self.bound.plan.stages_of_replicas):
            devices = dict.fromkeys((one.domain, one.device) for one in stages)
            for rank, device in enumerate(devices):
                layers = ", ".join(
                    f"{one.first_layer}-{one.first_layer + one.num_layers - 1}"
                    for one in stages
                    if (one.domain, one.device) == device
                )
                site = self.bound.topology.domains[device[0]].name
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

    def _said(self) -> Iterator[str]:
        difference = self.step_s / self.bound.step_s - 1.0
        if self.step_s == self.bound.step_s:
            yield "What these files say takes the time of the plan, to the last bit."
        else:
            yield f"What these files say takes {self.step_s!r} s a step, {difference:+.3%}."
        yield from (f"- {one}" for one in self.unsaid)
        mode = self.bound.plan.synchronisation
        if "" not in self.ranks:
            yield (
                f"- Changes of {mode.bits_per_value:g} bits are those of parameters in "
                f"{'BF16' if mode.bits_per_value == 16.0 else 'FP32'} (`training.dtype`)."
            )
