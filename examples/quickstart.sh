#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian to a trained model: installs what is missing, builds Graft, makes a graph of the Debian archive,
# learns from a tenth of its packages which section each one belongs to, and shows how well that went.
set -euo pipefail
# shellcheck source=examples/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

tools=$graft_root/examples/debian-archive
data=$graft_build/debian-archive
results=$graft_build/quickstart

# The data set is complete, and neither its program nor the lists of the archive have changed since.
is_current() {
    local stamp=$data/names.txt lists
    [ -f "$stamp" ] && [ ! "$tools/make_dataset.py" -nt "$stamp" ] || return 1
    mapfile -t lists < <(package_lists)
    [ ${#lists[@]} -eq 0 ] || [ -z "$(find "${lists[@]}" -cnewer "$stamp" -print -quit)" ]
}

setup_packages --with-lists build example
# shellcheck disable=SC2119
setup_build

export PYTHONDONTWRITEBYTECODE=1
if ! is_current; then
    say "Making a graph of the Debian archive ..."
    python3 "$tools/make_dataset.py" "$data"
fi

mkdir -p "$results"
"$graft_build/graft-train" "$data" --set model=sage --set layers=3 --set hidden=128 --set dropout=0.5 --set lr=0.01 \
    --set epochs=60 --json "$results/result.json" --predict "$results/predictions.npy"
say ""
python3 "$tools/show_predictions.py" "$data" "$results/predictions.npy"
python3 "$tools/plot_curve.py" "$results/result.json" "$results/learning-curve.png" \
    --title "Sections of Debian packages: GraphSAGE, 3 layers of 128"
say ""
say "graph           $data"
say "learning curve  $results/learning-curve.png"
