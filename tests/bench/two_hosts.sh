#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures training over ranks on two hosts with a slow network between them. Both hosts are emulated on this machine as
# two network namespaces, which are joined by a pair of virtual devices of limited rate. tests/bench/README.md has the
# details, and --help lists the arguments.
#
# The script creates everything in namespaces of processes, mounts and networks. The namespaces end with this script,
# even if it is killed. Their first process runs this script again, with `inside` as its first argument.
set -euo pipefail

self=$(readlink -f "${BASH_SOURCE[0]}")
here=$(dirname "$self")
root=$(dirname "$(dirname "$here")")
readonly skipped=77 second_host=graft-two

complain() { printf 'two_hosts.sh: %s\n' "$*" >&2; }

check_tools() {
    local tool package lacking=()
    while read -r tool package; do
        command -v "$tool" >/dev/null || lacking+=("$package")
    done <<'END'
unshare util-linux
nsenter util-linux
ip iproute2
tc iproute2
mpiexec.openmpi openmpi-bin
python3 python3
END
    if [ ${#lacking[@]} -gt 0 ]; then
        complain "this needs the packages $(printf '%s\n' "${lacking[@]}" | sort -u | tr '\n' ' ')to be installed"
        return "$skipped"
    fi
    if [ "$(id -u)" -ne 0 ]; then
        complain "this needs root: it creates network namespaces and limits the rate between them"
        return "$skipped"
    fi
    if ! unshare --net --uts --mount --pid --fork --mount-proc true 2>/dev/null; then
        complain "this system refuses to create namespaces; a container must be privileged for it"
        return "$skipped"
    fi
}

clean_up() {
    [ -z "$child" ] || kill -KILL "$child" 2>/dev/null || :
    wait 2>/dev/null
    rmdir "$folder"
}

# Create the namespaces, run this script in them, and remove them in every case.
outside() {
    local rc=0
    check_tools || return
    child=
    folder=$(mktemp -d)
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    setpriv --pdeathsig KILL unshare --net --uts --mount --pid --fork --kill-child --mount-proc \
        bash "$self" inside "$folder" "$@" &
    child=$!
    wait "$child" || rc=$?
    child=
    return "$rc"
}

# Create the second host. It has its own host name and network devices, and a process that keeps its namespaces alive.
start_second_host() {
    unshare --net --uts sh -c "hostname $second_host; echo >'$1/ready'; exec sleep infinity" &
    second=$!
    until [ -s "$1/ready" ]; do sleep 0.01; done
}

join_hosts() {
    local there=(nsenter --target "$second" --net)
    ip link add wire type veth peer name wire netns "$second" &&
        ip link set lo up && "${there[@]}" ip link set lo up &&
        ip address add 10.77.0.1/24 dev wire && "${there[@]}" ip address add 10.77.0.2/24 dev wire &&
        ip link set wire up && "${there[@]}" ip link set wire up
}

inside() {
    local folder=$1
    shift
    mount -t tmpfs tmpfs "$folder" # the mount and its files disappear together with the namespace
    hostname graft-one
    start_second_host "$folder"
    if ! join_hosts; then
        complain "the hosts cannot be joined by a pair of virtual Ethernet cards, see above"
        return "$skipped"
    fi
    # Open MPI calls this script as its remote shell, with the arguments HOST COMMAND...
    printf '#!/bin/sh\nshift\nexec nsenter --target %s --net --uts sh -c "$*"\n' "$second" >"$folder/shell"
    chmod +x "$folder/shell"
    export TMPDIR=$folder PYTHONDONTWRITEBYTECODE=1
    python3 "$here/two_hosts.py" --second "$second" --shell "$folder/shell" --root "$root" "$@"
}

case ${1:-} in
inside) "$@" ;;
-h | --help) exec python3 "$here/two_hosts.py" --help ;;
*) outside "$@" ;;
esac
