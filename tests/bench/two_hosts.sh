#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training over ranks on two hosts with a slow network between them, both made of this machine: two network namespaces
# joined by a pair of virtual devices of limited rate. tests/bench/README.md has the details, --help the arguments.
#
# Everything that is made here lives in namespaces of processes, mounts and networks that end with this script, also if
# it is killed. The first process in them is this script again, with `inside` as its first argument.
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

# Start the namespaces, and take them down however this ends.
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

# The other host: names and cards of its own, and a process that keeps them.
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
    mount -t tmpfs tmpfs "$folder" # ends with the namespace, and all files with it
    hostname graft-one
    start_second_host "$folder"
    if ! join_hosts; then
        complain "the hosts cannot be joined by a pair of virtual Ethernet cards, see above"
        return "$skipped"
    fi
    # What Open MPI takes for a remote shell: HOST COMMAND...
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
