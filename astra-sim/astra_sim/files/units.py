"""Units of ``system.json``; a GB of ``network.yml`` is another, see ``network_config``."""

NS_PER_S = 10**9
BYTES_PER_GB = 10**9
FLOPS_PER_TFLOPS = 10**12
