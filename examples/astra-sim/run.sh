#!/bin/sh
cd "$(dirname "$0")" || exit
exec python -m astra_sim.aware \
    --workload-configuration=trace \
    --system-configuration=system.json \
    --remote-memory-configuration=remote_memory.json \
    --network-configuration=network.yml \
    --logging-folder=log
