#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats, spells and lints the tree in one go, without a build: bash tests/style/check.sh [--fix]. With --fix, C files
# are formatted in place. A tool that is not installed is named and passed over. The exit status is 0 if nothing was
# found. 'tests/run.sh --suite fast' has the checks in Python too, and those that need a build.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
export PYTHONPATH=$PWD/tests/harness PYTHONDONTWRITEBYTECODE=1
mode=(--dry-run --Werror)
[ "${1-}" != --fix ] || mode=(-i)
failed=0

# check NAME COMMAND...: run the command, and show its output if it failed.
check() {
    local name=$1 said
    shift
    if ! command -v "$1" >/dev/null; then
        printf '%-16s passed over: %s is not installed, see examples/packages.txt\n' "$name" "$1"
    elif said=$("$@" 2>&1) && ! grep -q '^not ok' <<<"$said"; then
        printf '%-16s good\n' "$name"
    else
        printf '%-16s FAILED\n%s\n' "$name" "$(grep -v '^ok \|^[0-9]*\.\.' <<<"$said")"
        failed=1
    fi
}

mapfile -t c < <(git ls-files '*.c' '*.h' '*.hpp')
mapfile -t python < <(git ls-files '*.py')
mapfile -t shell < <(git ls-files '*.sh' .ci/run)
mapfile -t text < <(git ls-files '*.c' '*.h' '*.hpp' '*.py' '*.sh' '*.md' '*.build' '*.txt' ':!:*layout*')
check format clang-format-19 "${mode[@]}" "${c[@]}"
check spelling codespell --ignore-words tests/style/words.txt "${text[@]}"
check shell shellcheck -x "${shell[@]}"
check python pyflakes3 "${python[@]}"
for name in includes lengths names parts strategy words; do
    check "$name" python3 "tests/style/check_$name.py" .
done
check documents python3 tests/docs/check_docs.py .
exit "$failed"
