#!/bin/bash
# Checks the hosts of every border of this launch:  preflight.sh [SITE]
# Runs on the first host of SITE (by default that of this host) over its borders, and reaches others
# by ssh, without a password. Needs ping, ssh and, on both ends, iperf3. Writes iperf3's answers to
# preflight/SOURCE-TARGET.json. Prints a line a check; exit code 1: one failed.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
site=${1:-$(awk -F '\t' -v host="$(hostname)" '!/^#/ && $3 == host {print $1; exit}' "$here/borders.tsv")}
seconds=${SECONDS_PER_FLOW:-10}
say() { printf '%-7s%s: %s\n' "$1" "$2" "$3"; }  # ok or failed, what, and what was found
on() {  # host, command: here or by ssh
    if [[ $1 == "$(hostname)" || $1 == "$(hostname -s)" ]]; then bash -c "$2"
    else ssh -n -o BatchMode=yes -o ConnectTimeout=10 "$1" "$2"; fi
}
at_least() {  # what, found, needed
    if [[ $2 =~ ^[0-9]+$ && $2 -ge $3 ]]; then say ok "$1" "$2"
    else say failed "$1" "${2:-none}, must be at least $3"; fi
}
buffers() {  # host, bytes under way
    local key
    for key in net.core.rmem_max net.core.wmem_max net.ipv4.tcp_rmem net.ipv4.tcp_wmem; do
        at_least "$1 $key" "$(on "$1" "sysctl -n $key" | awk '{print $NF}')" "$2"
    done
    key=net.ipv4.tcp_slow_start_after_idle
    if [[ $(on "$1" "sysctl -n $key") == 0 ]]; then say ok "$1 $key" 0
    else say failed "$1 $key" "must be 0, or windows shrink while passes run"; fi
}
nccl() { on "$1" 'python3 -c "import torch; print(*torch.cuda.nccl.version(), sep=chr(46))"' 2>&1 | tail -n 1; }
packets() {  # largest payload that passes whole
    local size
    for size in 1472 1392; do
        if ping -c 1 -W 5 -M do -s "$size" -q "$1" > /dev/null 2>&1; then echo "$size"; return; fi
    done
}
rate() {  # of what the receiver counted, in Gbit/s
    awk '/"sum_received"/ {inside = 1} inside && /"bits_per_second"/ {
        gsub(/[^0-9.e+]/, "", $2); printf "%.2f", $2 / 1e9; exit}' "$1"
}
check() {  # source, target, host here, host there, bytes under way, Gbit/s, flows
    local name="$1 -> $2" from=$3 to=$4 seen here_has there_has got
    local file="$here/preflight/${1// /_}-${2// /_}.json"
    if ! ping -c 3 -W 5 -q "$to" > /dev/null 2>&1; then
        say failed "$name reachable" "$to does not answer ping"
        return
    fi
    say ok "$name reachable" "$to"
    case $(packets "$to") in
        1472) say ok "$name MTU" "1500 bytes" ;;
        1392) say failed "$name MTU" "below 1500 bytes, as under a tunnel: set interfaces to 1420" ;;
        *) say failed "$name MTU" "below 1420 bytes" ;;
    esac
    seen=$(on "$to" 'echo ${SSH_CLIENT%% *}')
    if hostname -I | tr ' ' '\n' | grep -qxF -- "${seen:-none}"; then say ok "$name address" "$seen, no NAT"
    else say failed "$name address" "$to sees ${seen:-nothing}, no address of $from: NAT, or no ssh"; fi
    buffers "$from" "$5"
    buffers "$to" "$5"
    here_has=$(nccl "$from") there_has=$(nccl "$to")
    if [[ $here_has == "$there_has" ]]; then say ok "$name NCCL" "$here_has"
    else say failed "$name NCCL" "versions must be equal, got $here_has and $there_has"; fi
    on "$to" 'iperf3 --server --one-off --daemon' > /dev/null 2>&1
    sleep 1
    if ! iperf3 --client "$to" --time "$seconds" --parallel "$7" --json > "$file"; then
        say failed "$name rate" "iperf3 gave no answer, see $file"
        return
    fi
    got=$(rate "$file")
    if awk -v got="$got" -v need="$6" 'BEGIN {exit !(got >= 0.9 * need)}'; then say ok "$name rate" "$got Gbit/s"
    else say failed "$name rate" "$got Gbit/s, the plan counts on $6"; fi
}
if [[ -z $site ]] || ! awk -F '\t' -v site="$site" '!/^#/ && $1 == site {found = 1} END {exit !found}' "$here/borders.tsv"; then
    echo "preflight.sh: site must be one of $(awk -F '\t' '!/^#/ {print $1}' "$here/borders.tsv" | sort -u | paste -sd ' '), got '$site'" >&2
    exit 2
fi
mkdir -p "$here/preflight"
while IFS=$'\t' read -r -u 3 source target from to needed gbit flows; do
    if [[ $source == "$site" ]]; then check "$source" "$target" "$from" "$to" "$needed" "$gbit" "$flows"; fi
done 3< <(grep -v '^#' "$here/borders.tsv") | tee "$here/preflight/report.txt"
! grep -q '^failed' "$here/preflight/report.txt"
