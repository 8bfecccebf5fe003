"""Figures and groups of GPUs with round numbers."""

from des.costs.device_groups import DeviceGroup
from des.devices.assembly import assembled, gpu_like
from des.devices.link_figures import DeviceFigures, NetworkConstants, TransferConstants
from des.devices.patterns import nvswitch, square

ROUND = DeviceFigures(
    pooled=TransferConstants(
        launch_s=20e-6,
        floor_s=50e-6,
        nvlink_step_s=1e-6,
        nvlink_fraction=0.5,
        pcie_step_s=5e-6,
        pcie_fraction=20 / 31.5,
    ),
    networks={
        "cluster": NetworkConstants(
            gpu_bandwidth_bytes_per_s=5e9, server_bandwidth_bytes_per_s=20e9, step_s=10e-6
        )
    },
    algorithm="ring",
    least_bytes=1e6,
    source="round numbers",
)
"""An A100 has 150 GB/s over 12 NVLinks, 20 over PCIe, and 5 out of its server."""


def switched(num_gpus=8, num_servers=1, places=None):
    """A100 GPUs at a switch, of one or several servers."""
    server = assembled(nvswitch(num_gpus, 12), gpu=gpu_like("a100"), node_of_gpu=(0,) * num_gpus)
    return DeviceGroup.of_server(
        server,
        ROUND,
        places=places,
        num_servers=num_servers,
        network=ROUND.of_network("cluster") if num_servers > 1 else None,
    )


def bridged(order=(0, 1, 2, 3)):
    """Four A100 bridged two and two, numbered in some order."""
    tokens = square(
        4, lambda one, other: "NV12" if order[one] // 2 == order[other] // 2 else "NODE"
    )
    server = assembled(tokens, gpu=gpu_like("a100"), node_of_gpu=(0,) * 4)
    return DeviceGroup.of_server(server, ROUND)
