#!/bin/bash
# Measures NCCL's rate between two ranks on one GPU, over sockets:  nccl_rate.sh [MS_OF_ROUND_TRIP ...]
# Takes five minutes and root, in a network namespace of its own whose loopback device waits
# (tc netem). Needs a GPU and python3 with torch. Prints a line of JSON for each round trip and
# setting: NCCL as it comes, and with nccl.env.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ -z ${EASTWEST_INSIDE:-} ]]; then exec env EASTWEST_INSIDE=1 unshare --net bash "$0" "$@"; fi
if [[ $# -eq 0 ]]; then set -- 0 24 32 54; fi
settings=$(find "$here" -name nccl.env | head -n 1)
ip link set lo up
rank() {  # rank, setting, round trip
    if [[ $2 == nccl.env ]]; then set -a; . "$settings"; set +a; fi
    NCCL_HOSTID="eastwest-$1" NCCL_NET=Socket NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 \
        NCCL_SOCKET_IFNAME=lo python3 - "$@" << 'PYTHON'
import json
import statistics
import sys
import time

import torch
from torch import distributed as dist

rank, setting, round_trip_ms = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
torch.cuda.set_device(0)
dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29541", rank=rank, world_size=2)
content = torch.zeros(64 * 2**20, dtype=torch.uint8, device="cuda")
times_s = []
for turn in range(7):
    torch.cuda.synchronize()
    begun_s = time.monotonic()
    dist.send(content, 1) if rank == 0 else dist.recv(content, 0)
    torch.cuda.synchronize()
    if turn > 1:
        times_s.append(time.monotonic() - begun_s)
if rank == 1:
    middle_s = statistics.median(times_s)
    found = {"round_trip_ms": round_trip_ms, "setting": setting, "nccl": torch.cuda.nccl.version()}
    print(json.dumps(found | {"gbit_per_s": 8e-9 * content.numel() / middle_s, "times_s": times_s}))
dist.destroy_process_group()
PYTHON
}
for round_trip in "$@"; do
    tc qdisc replace dev lo root netem delay "$(awk -v ms="$round_trip" 'BEGIN {print ms / 2}')ms" limit 1000000
    for setting in default nccl.env; do
        rank 0 "$setting" "$round_trip" &
        rank 1 "$setting" "$round_trip"
        wait $!
    done
done
