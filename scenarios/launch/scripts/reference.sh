#!/bin/bash
# Starts the ranks of one host:  launch.sh [HOST] [further flags of the reference runtime]
# HOST is a name of hosts.txt, by default this host's. Further flags: python -m
# scenarios.rehearse.worker --help, such as --steps 100 and --receives stock; equal on all hosts.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
host=$(hostname)
if [[ $# -gt 0 && $1 != -* ]]; then host=$1; shift; fi
read -r first ranks < <(awk -v host="$host" \
    '!/^#/ {if ($2 == host) print 0 + n, $3; n += $3}' "$here/hosts.txt") || {
    echo "launch.sh: host must be one of hosts.txt, got $host" >&2; exit 2; }
master=$(awk '$1 == "0" {print $2}' "$here/hosts.txt")
pids=()
trap 'kill "${pids[@]}" 2>/dev/null' EXIT
for ((rank = first; rank < first + ranks; rank++)); do
    python -m scenarios.rehearse.worker "$here" --rank "$rank" \
        --store "tcp://$master:${MASTER_PORT:-29500}" "$@" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
