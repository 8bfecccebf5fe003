#!/bin/bash
# Starts the ranks of one host:  launch.sh [HOST] [further flags of torchtitan]
# HOST is a name of hosts.txt, by default this host's. Further flags are those of data and training,
# such as --dataloader.dataset, --training.steps, --hf_assets_path.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
host=$(hostname)
if [[ $# -gt 0 && $1 != -* ]]; then host=$1; shift; fi
read -r node gpus < <(awk -v host="$host" '$2 == host {print $1, $3}' "$here/hosts.txt") || {
    echo "launch.sh: host must be one of hosts.txt, got $host" >&2; exit 2; }
nodes=$(grep -cv '^#' "$here/hosts.txt")
master=$(awk '$1 == "0" {print $2}' "$here/hosts.txt")
set -a; . "$here/nccl.env"; set +a
if grep -q '^\[fault_tolerance\]' "$here/config.toml"; then
    : "${TORCHFT_LIGHTHOUSE:?must be the address of the lighthouse, see lighthouse.sh}"
fi
cd "$here"
PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}" exec torchrun --nnodes "$nodes" \
    --node-rank "$node" --nproc-per-node "$gpus" --master-addr "$master" \
    --master-port "${MASTER_PORT:-29500}" -m torchtitan.train \
    --module eastwest_config --config train "$@"
