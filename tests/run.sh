#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds with warnings as errors, runs all tests. The last line is
# "N passed, N failed, N skipped"; the exit status is 0 only if something passed and nothing failed.
set -euo pipefail
# shellcheck source=examples/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../examples/setup.sh"

setup_packages build example tests
if ! setup_build -Dwerror=true -Dgraphblas=enabled -Dcblas=enabled -Donednn=enabled -Dmpi=enabled \
    -Dmetis=enabled; then
    say "0 passed, 1 failed, 0 skipped"
    exit 1
fi

if [ -z "${GRAFT_TEST_DATA:-}" ] && [ -d "$graft_root/../shared/data" ]; then
    GRAFT_TEST_DATA=$(cd "$graft_root/../shared/data" && pwd)
    export GRAFT_TEST_DATA
fi
export PYTHONDONTWRITEBYTECODE=1

log=$graft_build/meson-logs/testlog.json
rm -f "$log"
say "Testing ..."
rc=0
"$meson" test -C "$graft_build" --no-rebuild --print-errorlogs --num-processes 2 || rc=$?
python3 "$graft_root/tests/count.py" "$log" "$rc"
