#!/bin/sh
ASTRA_SIM_BIN=$(cd "${ASTRA_SIM_BIN:?folder of its programs}" && pwd) || exit
cd "$(dirname "$0")" || exit
exec "$ASTRA_SIM_BIN"/AstraSim_Analytical_Congestion_Aware \
    --workload-configuration=trace \
    --system-configuration=system.json \
    --remote-memory-configuration=remote_memory.json \
    --network-configuration=network.yml \
    --logging-folder=log
