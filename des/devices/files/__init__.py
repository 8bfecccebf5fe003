"""Readers of servers: texts of nvidia-smi and numactl, sysfs, NVML."""
