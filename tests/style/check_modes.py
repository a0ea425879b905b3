#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that parallel regions compute in the floating-point mode of the caller: check_modes.py ROOT. Each region
begins with gr_fp_swap(), with mode_swap() in an adapter, or with graft_grb_swap_mode(), unless its loop only copies,
counts or compares."""
import collections
import re
import sys

import sources
import tap

REGION = re.compile(r"^[ \t]*(?:#pragma[ \t]+omp[ \t]+parallel\b|GRAFT_GRB_PARALLEL\()", re.MULTILINE)
FIRST_LINES = 18
# The number of loops of a file that copy numbers, or compute only with integers.
EXACT = {"plugin/base/pool.c": 1, "plugin/dgraph/columns.c": 2, "plugin/dgraph/values.c": 1, "plugin/edge/check.c": 1,
         "plugin/edge/edge.c": 1, "plugin/edge/index_add.c": 2, "plugin/graph/csr.c": 1, "plugin/model/labels.c": 1,
         "plugin/run/layer_input.c": 1, "plugin/partition/joint.c": 1, "plugin/sample/cache.c": 1,
         "plugin/run/sparse.c": 1, "plugin/spmm/cuts.c": 1, "adapters/graphblas/kernel.c": 1,
         "adapters/graphblas/graft_grb.h": 3, "adapters/graphblas/graft_grb_lend.h": 5,
         "adapters/graphblas/graft_grb_store.h": 1}


def regions_without(text):
    """The lines of regions that do not take the mode of the caller. A region ends at the end of its function at the
    latest."""
    text = sources.blank_out(text)
    found = []
    for match in REGION.finditer(text):
        body = "\n".join(text[match.start():].split("\n}")[0].splitlines()[:FIRST_LINES])
        if not re.search(r"\b(?:gr_fp_swap|mode_swap|graft_grb_swap_mode)\(", body):
            found.append(sources.line_of(text, match.start()))
    return found


def main():
    root = sys.argv[1]
    counts, where = collections.Counter(), []
    for path in sources.files(root, ("plugin", "adapters")):
        lines = regions_without(sources.read(root, path))
        counts[path] = len(lines)
        if len(lines) != EXACT.get(path, 0):
            where.append(f"{path}: {len(lines)} regions without the caller's mode, at lines {lines}; "
                         f"expected {EXACT.get(path, 0)}")
    tap.ok(not where, "parallel regions compute in the floating-point mode of the caller", *where)
    plain = "#pragma omp parallel for\n    for (;;) x[i] += y;\n}\n"
    tap.ok(regions_without(plain) == [1] and not regions_without(plain.replace("x[", "gr_fp_swap(fp), x[")),
           "a region that does not is found")
    tap.done()


if __name__ == "__main__":
    main()
