"""Runs of training logs: their sizes by the trainer's arguments, and their plan over sites."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from calibration.measured.logged_arguments import run_of_arguments, whole_argument
from calibration.measured.run_sizes import MeasuredRun
from calibration.measured.runs import RunTable, Setup
from calibration.measurements.formats import read_measurements
from calibration.measurements.reading import Reading
from calibration.measurements.sites import Sites
from calibration.measurements.torchtitan_log import NAME as TORCHTITAN
from des.compiled.simulate import simulate_compiled
from des.job.models import build_workload
from des.job.transformer import AttentionKernel
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.gradient_exchange import GradientExchange
from des.plan.parallelism import Parallelism
from des.plan.placement import Placement
from des.plan.plan import Plan
from des.world.domain import Domain
from des.world.topology import Topology


@dataclass(frozen=True, kw_only=True)
class LoggedRun:
    """A run of a log: sizes and step, and what else its trainer said."""

    reading: Reading
    run: MeasuredRun
    vocabulary_size: int
    recomputation: str
    attention: AttentionKernel
    sequence_parallel: bool
    fp32_gradients: bool
    overlapped: bool
    is_sharded: bool

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.reading.file).name

    @cached_property
    def workload(self) -> Workload:
        """The job; its microbatches are those of all replicas together."""
        run = self.run
        together = run.microbatch_size * run.data
        return build_workload(
            run.architecture(self.vocabulary_size),
            num_microbatches=run.global_batch // together,
            microbatch_size=together,
            sequence_length=run.sequence_length,
            recomputation=self.recomputation,
            attention=self.attention if self.recomputation in ("full", "selective") else None,
            gradient_precision="fp32" if self.fp32_gradients else "bf16",
        )

    def plan(self, topology: Topology) -> Plan:
        """Plan on the sites in their order: consecutive ranks form a stage of all replicas.

        Raises
        ------
        ValueError
            If the sites have too few GPUs, or one of the stages would lie in two.
        """
        run = self.run
        ranks = [at for at, one in enumerate(topology.domains) for _ in range(one.num_gpus)]
        if run.num_gpus > len(ranks):
            raise ValueError(
                f"{self.name}: world_size must be at most the {len(ranks)} GPUs of the network, "
                f"got {run.num_gpus}"
            )
        size = run.num_gpus // run.pipeline
        stages = [set(ranks[at : at + size]) for at in range(0, run.num_gpus, size)]
        for number, sites in enumerate(stages):
            if len(sites) > 1:
                names = " and ".join(topology.domains[at].name for at in sorted(sites))
                raise ValueError(
                    f"{self.name}: stage {number} of {size} GPUs must lie in one site, got {names}"
                )
        homes = [sites.pop() for sites in stages]
        layers = run.num_layers // (run.pipeline * run.interleaving)
        return Plan(
            placement=Placement(
                domain_of_layer=tuple(
                    home for home in homes * run.interleaving for _ in range(layers)
                )
            ),
            schedule="1f1b" if run.interleaving == 1 else "interleaved_1f1b",
            parallelism=tuple(
                Parallelism(
                    tensor=run.tensor,
                    data=run.data,
                    pipeline=max(1, homes.count(at)),
                    chunks=run.interleaving,
                    sequence_parallel=self.sequence_parallel,
                    sharding="optimiser" if self.is_sharded else "none",
                    expert=run.expert,
                )
                for at in range(topology.num_domains)
            ),
            exchange=GradientExchange(overlapped=self.overlapped),
        )

    def predicted_s(self, topology: Topology, corrections: Corrections = NO_CORRECTIONS) -> float:
        """Time of a step in the simulator. [s]"""
        plan = self.plan(topology)
        return simulate_compiled(
            topology, self.workload, plan, corrections, is_recorded=False
        ).makespan_s

    def setup(self, domain: Domain) -> Setup:
        """Cluster of a single domain, as `calibration.measured.solved_layers` takes it.

        Raises
        ------
        ValueError
            If the kind of its GPUs is not known.
        """
        if domain.gpu_kind is None:
            raise ValueError(f"domain {domain.name}: gpu must be a known kind, got none")
        nodes = domain.nodes
        return Setup(
            gpu=domain.gpu_kind,
            gpus_per_node=domain.num_gpus if nodes is None else nodes.gpus_per_node,
            intra_bandwidth_bytes_per_s=domain.intra_bandwidth_bytes_per_s,
            nics_per_node=1 if nodes is None else nodes.nics_per_node,
            nic_bandwidth_bytes_per_s=domain.intra_bandwidth_bytes_per_s
            if nodes is None
            else nodes.nic_bandwidth_bytes_per_s,
            vocabulary_size=self.vocabulary_size,
            gradient_precision="fp32" if self.fp32_gradients else "bf16",
            recomputation=self.recomputation,
            attention=self.attention,
            sequence_parallel=self.sequence_parallel,
        )


def logged_run(reading: Reading) -> LoggedRun:
    """Read the run of a training log from what its trainer printed.

    Raises
    ------
    ValueError
        If an argument is missing, or what is simulated otherwise (context parallelism); naming it.
    """
    facts, is_titan = dict(reading.facts), reading.format == TORCHTITAN
    run = run_of_arguments(reading)
    vocabulary = facts.get("padded_vocab_size", facts.get("vocab_size"))
    if vocabulary is None:
        raise ValueError(f"{reading.file}: padded_vocab_size must be printed, got none")
    is_fused = is_titan or facts.get("use_flash_attn") == "True" or "attention_backend" in facts
    is_fused = is_fused or facts.get("transformer_impl") == "transformer_engine"
    return LoggedRun(
        reading=reading,
        run=run,
        vocabulary_size=whole_argument(reading, "vocab_size", vocabulary),
        recomputation={"full": "full", "selective": "selective"}.get(
            facts.get("recompute_granularity", ""), "flash" if is_fused else "none"
        ),
        attention="flash" if is_fused else "plain",
        sequence_parallel=facts.get("sequence_parallel", str(is_titan)) == "True",
        fp32_gradients=facts.get("accumulate_allreduce_grads_in_fp32", str(is_titan)) == "True",
        overlapped=facts.get("overlap_grad_reduce", str(is_titan)) == "True",
        is_sharded=facts.get("use_distributed_optimizer", str(is_titan)) == "True",
    )


def read_logs(paths: Sequence[Path]) -> list[LoggedRun]:
    """Read the runs of training logs, or folders of them; what holds no steps is left out.

    Raises
    ------
    ValueError
        If a file is wrong, or none holds steps.
    """
    readings = read_measurements(paths, Sites(patterns={}))
    found = [logged_run(one) for one in readings if one.what == "step"]
    if not found:
        raise ValueError(f"{paths[0]}: must hold steps of training, got none")
    return found


def logged_table(paths: Sequence[Path], domain: Domain) -> RunTable:
    """Table of the runs of some logs on one domain.

    Raises
    ------
    ValueError
        If a log is wrong, or they differ in what a table's runs share.
    """
    found = read_logs(paths)
    setups = {one.setup(domain): one.name for one in found}
    if len(setups) > 1:
        raise ValueError(
            f"{', '.join(setups.values())}: must have one vocabulary, recomputation, sequence "
            "parallelism and precision of gradients, got several"
        )
    return RunTable(
        name=domain.name,
        source=", ".join(one.name for one in found),
        setup=next(iter(setups)),
        runs=tuple(one.run for one in found),
    )
