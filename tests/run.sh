#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds with warnings as errors and runs the tests. The last line is "N passed, N failed, N skipped"; the exit status
# is 0 only if something passed and nothing failed.
#
#   bash tests/run.sh                           every test; installs the Debian packages that are missing
#   bash tests/run.sh --suite fast              the tests of one suite: fast, ranks, mpi, abi or slow
#   bash tests/run.sh [--suite fast] NAME...    the tests with these names, such as unit/codec/test_codec or test_codec,
#                                               or of these folders, such as unit/codec
set -euo pipefail
# shellcheck source=examples/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../examples/setup.sh"

suites=(fast ranks mpi abi slow)
suite='' names=()
while [ $# -gt 0 ]; do
    case $1 in
    --suite) suite=${2-} && shift ;;
    --suite=*) suite=${1#*=} ;;
    -*) complain "unknown option $1; the only one is --suite" && exit 2 ;;
    *) names+=("$1") ;;
    esac
    shift || { complain "--suite needs one of ${suites[*]}" && exit 2; }
done
if [ -n "$suite" ] && [[ " ${suites[*]} " != *" $suite "* ]]; then
    complain "there is no suite '$suite'; the suites are ${suites[*]}" && exit 2
fi

# On a first run only tools are installed. Optional libraries are used if they are already there.
options=(-Dwerror=true)
if [[ "$suite" =~ ^(mpi|slow)$ ]] || [ -z "$suite${names[*]}" ]; then
    setup_packages tools build example tests
    options+=(-Dgraphblas=enabled -Dcblas=enabled -Donednn=enabled -Dmpi=enabled -Dmetis=enabled)
else
    [ -z "$(lacking_tools)" ] || setup_packages tools
    [ ! -f "$graft_build/build.ninja" ] || options=()
fi
if ! setup_build "${options[@]}"; then
    say "0 passed, 1 failed, 0 skipped"
    exit 1
fi

if [ -z "${GRAFT_TEST_DATA:-}" ] && [ -d "$graft_root/../shared/data" ]; then
    GRAFT_TEST_DATA=$(cd "$graft_root/../shared/data" && pwd)
    export GRAFT_TEST_DATA
fi
export PYTHONDONTWRITEBYTECODE=1

chosen=$("$meson" introspect --tests "$graft_build" | python3 "$graft_root/tests/choose.py" "$suite" "${names[@]}") ||
    exit 2
log=$graft_build/meson-logs/testlog.json
rm -f "$log"
say "Testing ..."
rc=0
# shellcheck disable=SC2086 # one name a word
# Three tests run at the same time even on two cores, because tests of faults mostly wait for deadlines.
"$meson" test -C "$graft_build" --no-rebuild --print-errorlogs --num-processes 3 $chosen || rc=$?
python3 "$graft_root/tests/count.py" "$log" "$rc"
