"""Flags of the pods of manifests."""

import re
from dataclasses import dataclass

from des.base.checks import prefixed_errors, require_count
from des.base.command import UsageError
from des.base.flags import option
from des.base.quantities import SIZE_BYTES, parse_quantity
from scenarios.devices.sources import ServerFlags
from scenarios.k8s.manifest_settings import MIB, PodSettings

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_EFFECTS = "NoSchedule|PreferNoSchedule|NoExecute"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFlags(ServerFlags):
    """Settings of a server and of the pods of the gang; the fields are flags."""

    pod_name: str = option("train", "name of the gang; its pods are NAME-0, NAME-1, ...")
    pod_image: str | None = option(None, "image of the pods", default_text="that of --image")
    gpus_per_pod: int = option(4, "GPUs of each pod")
    cpus_per_pod: int | None = option(None, "whole CPUs of each pod", default_text="4 a GPU")
    memory_per_pod: str | None = option(
        None, "memory of each pod, such as 256GiB", default_text="32 GiB a GPU"
    )
    accelerator: str | None = option(
        None, "value of the label accelerator that pods select nodes by", default_text="any"
    )
    node_selector: tuple[str, ...] = option(
        (), "further labels of nodes that pods select, as KEY=VALUE", default_text="none"
    )
    tolerations: tuple[str, ...] = option(
        (),
        "taints that pods tolerate, as KEY:EFFECT or KEY=VALUE:EFFECT, such as "
        "nvidia.com/gpu:NoSchedule",
        default_text="none",
    )
    spread: tuple[str, ...] = option(
        (),
        "topology spread constraints of pods, as KEY:MAXSKEW, such as kubernetes.io/hostname:1",
        default_text="none",
    )
    cuda_visible_devices: bool = option(
        False,
        "CUDA_VISIBLE_DEVICES of pods from the annotation gpu-ids of their binding; for nodes that "
        "show a pod all GPUs",
    )


def pod_settings(flags: PodFlags, image: str) -> PodSettings:
    """Read the flags.

    Raises
    ------
    ValueError
        If one is wrong, naming it.
    """
    require_count("manifests", "gpus_per_pod", flags.gpus_per_pod)
    num_cpus = 4 * flags.gpus_per_pod if flags.cpus_per_pod is None else flags.cpus_per_pod
    require_count("manifests", "cpus_per_pod", num_cpus)
    if re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", flags.pod_name) is None:
        raise UsageError(
            f"--pod-name must be small letters, digits and hyphens, got {flags.pod_name!r}"
        )
    labels = [] if flags.accelerator is None else [f"accelerator={flags.accelerator}"]
    selected = (
        _match("--node-selector", rf"({_NAME})=({_NAME})", "KEY=VALUE", text)
        for text in (*labels, *flags.node_selector)
    )
    spread = (
        _match("--spread", rf"({_NAME}):([1-9][0-9]{{0,5}})", "KEY:MAXSKEW", text)
        for text in flags.spread
    )
    return PodSettings(
        image=flags.pod_image or image,
        num_gpus=flags.gpus_per_pod,
        num_cpus=num_cpus,
        memory=_memory(flags),
        node_selector={each[1]: each[2] for each in selected},
        tolerations=tuple(map(_toleration, flags.tolerations)),
        spread={each[1]: int(each[2]) for each in spread},
        shows_gpus=flags.cuda_visible_devices,
    )


def size_bytes(flag: str, text: str) -> int:
    """Read the size of a flag. [bytes]"""
    with prefixed_errors(f"{flag} ", UsageError):
        return round(parse_quantity(text, SIZE_BYTES))


def _memory(flags: PodFlags) -> str:
    if flags.memory_per_pod is None:
        return f"{32 * flags.gpus_per_pod}Gi"
    size = size_bytes("--memory-per-pod", flags.memory_per_pod)
    if size < MIB or size % MIB:
        raise UsageError(
            f"--memory-per-pod must be whole MiB, at least one, got {flags.memory_per_pod}"
        )
    return f"{size // MIB}Mi"


def _toleration(text: str) -> dict[str, str]:
    found = _match(
        "--tolerations",
        rf"({_NAME})(?:=({_NAME}))?:({_EFFECTS})",
        f"KEY:EFFECT or KEY=VALUE:EFFECT, with effects {_EFFECTS.replace('|', ', ')}",
        text,
    )
    value = {"operator": "Exists"} if found[2] is None else {"operator": "Equal", "value": found[2]}
    return {"key": found[1], **value, "effect": found[3]}


def _match(flag: str, pattern: str, form: str, text: str) -> re.Match[str]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise UsageError(f"{flag} must be {form}, got {text!r}")
    return found
