"""Bandwidths as Sailor profiles them: a polynomial of the message size, for 1 to 8 pairs of GPUs.

The test behind it (``sailor/profiling/custom_nccl_tests/test_nccl.cc`` of the artifact) lets half
of the GPUs send to the other half, each one message of the given size, and counts the bytes of all.
So the size is that of one pair, and the bandwidth is that of all pairs together.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

_BYTES_PER_GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """``c2 L^2 + c1 L + c0`` bytes/s; L is the binary logarithm of the megabytes of a pair."""

    c2: float
    c1: float
    c0: float

    def at(self, num_bytes: float) -> float:
        """Bandwidth for messages of that size. [bytes/s]

        Raises
        ------
        ValueError
            If the polynomial is not positive there: it was fitted to 64 KiB to 1 GiB.

        Examples
        --------
        >>> Bandwidth(c2=-1e6, c1=2e6, c0=3e6).at(4e6)
        3000000.0
        """
        size = math.log2(num_bytes / 1e6)
        bandwidth = (self.c2 * size + self.c1) * size + self.c0
        if not bandwidth > 0:
            raise ValueError(
                f"{self}: must be positive for a message of {num_bytes:.6g} bytes, "
                f"got {bandwidth:.6g} bytes/s"
            )
        return bandwidth

    def transfer_s(self, num_bytes: float) -> float:
        """Time of one message of that size. [s]"""
        return num_bytes / self.at(num_bytes)


def bandwidth_of(c2: float, c1: float, c0: float) -> Bandwidth:
    """Bandwidth by coefficients in GB/s."""
    return Bandwidth(c2=c2 * _BYTES_PER_GB, c1=c1 * _BYTES_PER_GB, c0=c0 * _BYTES_PER_GB)


@dataclass(frozen=True, kw_only=True)
class NetworkProfile:
    """Profiles between nodes, per types of GPU and pairs; and inside a node, per type and GPUs."""

    between: Mapping[tuple[str, str], Mapping[int, Bandwidth]]
    inside: Mapping[tuple[str, int], Bandwidth]

    def node_bandwidth_bytes_per_s(
        self, source: str, target: str, num_pairs: int, num_bytes: float
    ) -> float:
        """Bandwidth of one node to another when all pairs send ``num_bytes`` together. [bytes/s]

        More pairs cannot be slower than some of them, which could carry everything: of the
        profiles for at most ``num_pairs``, the best counts. (Some rows for 1 or 8 pairs of
        unlike GPUs repeat those of a slower cluster.)

        Raises
        ------
        ValueError
            If there is no profile.
        """
        profiles = self.between.get((source, target), {})
        usable = [
            bandwidth.at(num_bytes / pairs)
            for pairs, bandwidth in profiles.items()
            if pairs <= num_pairs
        ]
        if not usable:
            raise ValueError(
                f"network_profiles.csv: src_gpu {source}, dst_gpu {target} must have a row of "
                f"scope same zone with gpus_per_side of at most {num_pairs}, got none"
            )
        return max(usable)

    def gpu_bandwidth_bytes_per_s(self, gpu_type: str, num_gpus: int, num_bytes: float) -> float:
        """Bandwidth of each GPU to another of its node, all at once; half of them sent. [bytes/s]

        Raises
        ------
        ValueError
            If there is no profile.
        """
        if (gpu_type, num_gpus) not in self.inside:
            raise ValueError(
                f"network_profiles.csv: src_gpu {gpu_type} must have a row of scope intra node "
                f"with gpus_per_side {num_gpus}, got none"
            )
        return self.inside[gpu_type, num_gpus].at(num_bytes) / (num_gpus / 2)
