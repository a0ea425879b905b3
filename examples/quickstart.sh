#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian to a trained model: installs what is missing, builds Graft, makes a graph of the Debian archive,
# learns from a tenth of its packages, on two ranks, which section each one belongs to, and shows how well that went.
set -euo pipefail
# shellcheck source=examples/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

tools=$graft_root/examples/debian-archive
data=$graft_build/debian-archive
results=$graft_build/quickstart

# Whether the data set is complete, and neither the program that makes it nor the package lists have changed since.
is_current() {
    local stamp=$data/names.txt lists
    [ -f "$stamp" ] && [ ! "$tools/make_dataset.py" -nt "$stamp" ] || return 1
    mapfile -t lists < <(package_lists)
    [ ${#lists[@]} -eq 0 ] || [ -z "$(find "${lists[@]}" -cnewer "$stamp" -print -quit)" ]
}

# Set `launch` to a command that starts two ranks on this machine, even in a chroot, in a container or on one processor.
find_launcher() {
    local name version
    for name in mpiexec.openmpi mpiexec; do
        version=$("$name" --version 2>/dev/null) || continue
        [[ $version == *"Open MPI"* || $version == *OpenRTE* ]] || continue
        launch=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
            "$name" -n 2 --bind-to none --oversubscribe --mca pml ob1 --mca btl_vader_single_copy_mechanism none)
        return 0
    done
    return 1
}

train() {
    "$@" "$graft_build/graft-train" "$data" --set model=sage --set layers=3 --set hidden=128 --set dropout=0.5 \
        --set lr=0.01 --set epochs=60 "${settings[@]}" --json "$results/result.json" \
        --predict "$results/predictions.npy"
}

# Each of the two ranks uses half of the processors. A vertex belongs to the rank that has most of its neighbours.
train_on_two_ranks() {
    local launch threads=$(($(nproc) / 2)) rc=0
    if ! find_launcher; then
        say "There is no Open MPI to start two ranks with: this is one process."
        return 1
    fi
    local settings=(--set partition=stream --set threads="$((threads > 0 ? threads : 1))")
    trap 'exit 130' INT
    trap 'exit 143' TERM
    train "${launch[@]}" || rc=$?
    trap - INT TERM
    [ "$rc" -eq 0 ] || complain "training on two ranks failed, see above; once more in one process:"
    return "$rc"
}

setup_packages --with-lists tools build example
# shellcheck disable=SC2119
setup_build

export PYTHONDONTWRITEBYTECODE=1
if ! is_current; then
    say "Making a graph of the Debian archive ..."
    python3 "$tools/make_dataset.py" "$data"
fi

mkdir -p "$results"
settings=()
train_on_two_ranks || train env
say ""
python3 "$tools/show_predictions.py" "$data" "$results/predictions.npy"
python3 "$tools/plot_curve.py" "$results/result.json" "$results/learning-curve.png" \
    --title "Sections of Debian packages: GraphSAGE, 3 layers of 128"
say ""
say "graph           $data"
say "learning curve  $results/learning-curve.png"
