#!/bin/bash
# Starts the lighthouse of torchft, once, on a host that all sites reach:  lighthouse.sh [PORT]
# Every launch then has TORCHFT_LIGHTHOUSE=http://THIS_HOST:PORT in its environment.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
replicas=$(find "$here" -path '*/replica-*/config.toml' | wc -l)
exec torchft_lighthouse --min_replicas "$replicas" --bind "[::]:${1:-29510}"
