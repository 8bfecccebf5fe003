"""README of a launch: stages on hosts, how to start, borders, and what the trainer cannot take."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.decision.bound_plan import BoundPlan
from agents.trainers.table import trainer_named
from scenarios.iteration.launch_folder import LaunchHost
from scenarios.launch.borders import DEFAULT_CHUNK_BYTES, NcclSettings, SiteBorder
from scenarios.launch.rank_hosts import devices_of

_UNCHECKED = {
    "megatron": (
        "A stage without layers, 80 layers over 3 stages without a layout, and hosts in another "
        "order: Megatron-LM starts, and hangs or sends between other sites.",
        "GPUs of a host that belong to two replicas, where tensor x context is not a multiple of "
        "them.",
    ),
    "torchtitan": (
        "A layer left out of `module_fqns_per_model_part`, `output` in place of `lm_head`, layers "
        "that there are not: torchtitan loses them silently.",
        "A pass twice in `schedule.csv`, `0F0x9` for `0F0`, and files with sends and receives, "
        "whose order can give wrong gradients silently.",
    ),
}
"""Mistakes that a trainer does not notice, and that reading the files back does."""

_STARTS = {
    "megatron": "MEGATRON=/path/to/Megatron-LM bash $PWD/launch.sh {} DATA_FLAGS",
    "torchtitan": "bash $PWD/launch.sh {} DATA_FLAGS",
}


@dataclass(frozen=True, kw_only=True)
class LaunchPage:
    """Facts of a launch, as a page for those who start it."""

    bound: BoundPlan
    ranks: Mapping[str, Sequence[LaunchHost]]
    borders: Sequence[SiteBorder]
    settings: NcclSettings
    step_s: float
    unsaid: Sequence[str]
    has_placeholders: bool

    def text(self) -> str:
        """Return the page, in Markdown."""
        bound = self.bound
        title = trainer_named(bound.trainer).title
        lines = [
            f"# {bound.workload.name} for {title}",
            "",
            f"{bound.workload.num_layers} layers, {bound.workload.tokens_per_iteration:,} tokens a "
            f"step, {bound.step_s:.6g} s a step. `plan.json` is the complete plan; `eastwest "
            "simulate --plan .` reads these files back.",
            "",
            "## Stages and hosts",
            *self._stages(),
            "",
            *self._hosts(),
            "",
            "## Start",
            *self._steps(),
            "",
            *(("## Borders", *self._border_rows(), "") if self.borders else ()),
            f"## What {title} is not told",
            *self._said(),
            "",
            f"## What {title} does not check, and was checked here",
            *(f"- {one}" for one in _UNCHECKED[bound.trainer]),
            "- Another number of GPUs on some host is what `torchrun` allows; `hosts.txt` has it.",
        ]
        return "\n".join(lines) + "\n"

    def _stages(self) -> Iterator[str]:
        yield "| replica | rank of the pipeline | site | layers, from 0 |"
        yield "|---|---|---|---|"
        for replica, stages in enumerate(self.bound.plan.stages_of_replicas):
            for rank, device in enumerate(devices_of(stages)[0]):
                own = [one for one in stages if (one.domain, one.device) == device]
                layers = ", ".join(
                    f"{one.first_layer}-{one.first_layer + one.num_layers - 1}" for one in own
                )
                site = self.bound.topology.domains[device[0]].name
                yield f"| {replica} | {rank} | {site} | {layers} |"

    def _hosts(self) -> Iterator[str]:
        for folder, hosts in self.ranks.items():
            sites: dict[str, list[LaunchHost]] = {}
            for host in hosts:
                sites.setdefault(host.site, []).append(host)
            where = f"`{folder}hosts.txt`"
            for site, own in sites.items():
                ranks = ", ".join(str(host.rank) for host in own)
                yield f"- {where}: node ranks {ranks} are in {site}."
        if self.has_placeholders:
            yield (
                "- **Names of hosts are placeholders**, `<site>-<n>`: write the plan again with "
                "`--hosts FILE`, or replace them in `hosts.txt`, `borders.tsv` and `*.sbatch`."
            )

    def _steps(self) -> Iterator[str]:
        start = _STARTS[self.bound.trainer]
        has_several = "" not in self.ranks
        each = " in each `replica-*` folder" if has_several else ""
        yield "1. Copy this folder to the same place on every host."
        yield (
            "2. `bash preflight.sh SITE` on the first host of every site: ping, MTU, NAT, buffers, "
            "NCCL, and a flow of iperf3, whose answers stay in `preflight/*.json`."
        )
        if has_several:
            yield (
                "3. `bash lighthouse.sh` on a host that all sites reach, and `export "
                "TORCHFT_LIGHTHOUSE=http://HOST:29510` for every launch."
            )
        yield (
            f"{4 if has_several else 3}. All hosts at once{each}: `awk '!/^#/ {{print $2}}' "
            f'hosts.txt | xargs -P 0 -I {{}} ssh {{}} "{start}"`. Each runs a line of '
            "`torchrun`. With SLURM: `sbatch SITE.sbatch DATA_FLAGS` for every site."
        )

    def _border_rows(self) -> Iterator[str]:
        yield "| from | to | Gbit/s | round trip [ms] | under way [MB] | a pair of GPUs [Gbit/s] |"
        yield "|---|---|---|---|---|---|"
        for one in self.borders:
            default, own = (
                one.pair_bytes_per_s(chunk) * 8e-9
                for chunk in (DEFAULT_CHUNK_BYTES, self.settings.chunk_bytes)
            )
            yield (
                f"| {one.source} | {one.target} | {one.bandwidth_bytes_per_s * 8e-9:.4g} | "
                f"{one.round_trip_s * 1e3:.4g} | {one.in_flight_bytes / 1e6:.4g} | "
                f"{default:.3g} as NCCL comes, {own:.3g} with `nccl.env` |"
            )
        yield ""
        yield (
            "Rates of a pair are a formula, not measured: 8 chunks of 2 channels under way, or the "
            f"pair's share of the border, with {self.borders[0].num_pairs} pairs or more at once."
        )

    def _said(self) -> Iterator[str]:
        if self.step_s == self.bound.step_s:
            yield "Nothing: what these files say takes the time of the plan, to the last bit."
        else:
            difference = self.step_s / self.bound.step_s - 1.0
            yield (
                f"What these files say takes {self.step_s!r} s a step, {difference:+.3%} of the "
                f"{self.bound.step_s!r} s of the plan."
            )
        yield from (f"- {one}" for one in self.unsaid)
        mode = self.bound.plan.synchronisation
        if self.bound.trainer == "torchtitan" and "" not in self.ranks:
            yield (
                f"- Changes of {mode.bits_per_value:g} bits are those of parameters in "
                f"{'BF16' if mode.bits_per_value == 16.0 else 'FP32'} (`training.dtype`)."
            )
