#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What quantized messages cost in accuracy and save in bytes; --help lists the options.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 "$(dirname "${BASH_SOURCE[0]}")/accuracy.py" "$@"
