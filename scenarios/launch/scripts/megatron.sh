#!/bin/bash
# Starts the ranks of one host:  MEGATRON=/path/to/Megatron-LM launch.sh [HOST] [further flags]
# HOST is a name of hosts.txt, by default this host's. Further flags are those of data and training,
# such as --data-path, --tokenizer-type, --lr, --train-iters, --save.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
host=$(hostname)
if [[ $# -gt 0 && $1 != -* ]]; then host=$1; shift; fi
read -r node gpus < <(awk -v host="$host" '$2 == host {print $1, $3}' "$here/hosts.txt") || {
    echo "launch.sh: host must be one of hosts.txt, got $host" >&2; exit 2; }
nodes=$(grep -cv '^#' "$here/hosts.txt")
master=$(awk '$1 == "0" {print $2}' "$here/hosts.txt")
args=()
while read -r -a words; do args+=("${words[@]}"); done < "$here/args.txt"
set -a; . "$here/nccl.env"; set +a
export CUDA_DEVICE_MAX_CONNECTIONS="${CUDA_DEVICE_MAX_CONNECTIONS:-1}"
exec torchrun --nnodes "$nodes" --node-rank "$node" --nproc-per-node "$gpus" \
    --master-addr "$master" --master-port "${MASTER_PORT:-29500}" \
    "${MEGATRON:?must be the folder with pretrain_gpt.py}/pretrain_gpt.py" "${args[@]}" "$@"
