#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures how much accuracy quantized messages cost, and how many bytes they save. --help lists the options.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 "$(dirname "${BASH_SOURCE[0]}")/accuracy.py" "$@"
