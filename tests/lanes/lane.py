#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests in another build of the tree: lane.py LANE SOURCE-ROOT BUILD-ROOT MESON [PROGRAM...]. Prints TAP, one line
per program. The default is the programs of the lane. A PROGRAM is one of these or a unit test; "all" runs all of both,
which takes an hour. Both lanes have assertions.

  sanitize   gcc with the address and undefined-behaviour sanitizers: numbers, files, arguments, ranks
  threads    clang with the thread sanitizer and small limits, without foreign libraries: ranks that are threads, and
             teams of OpenMP, whose synchronization Archer makes known to the sanitizer"""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

import tap

HERE = os.path.dirname(os.path.abspath(__file__))
# The options that both builds share, and the additional options of lane `threads`.
OPTIONS = ["-Dsanitize_lane=false", "-Db_lundef=false", "-Db_ndebug=false", "-Dgraft-train=disabled"]
SMALL_AND_ALONE = ["-Dsmall_limits=true", "-Dgraphblas=disabled", "-Dcblas=disabled", "-Donednn=disabled",
                   "-Dmpi=disabled", "-Dmetis=disabled"]

# The tests of this lane, each with the arguments with which it runs.
SANITIZED = {
    "tests/unit/test_gradient": ["sage"],  # test_blocks runs with the other kinds of models
    "tests/unit/test_mxm": ["simd", "graphblas", "reference"],
    "tests/unit/test_epilogue": ["tests/unit/modules/graft_kernel_wrong.so"],
    "tests/unit/test_blocks": [],
    "tests/unit/test_edge": [],
    "tests/unit/test_codec": [],
    "tests/unit/test_sampler": [],
    "tests/unit/test_subgraphs": [],
    "tests/unit/test_batches": [],
    "tests/unit/test_batches_ranks": [],
    "tests/unit/test_by_rows": [],
    "tests/unit/test_feature_types": [],
    "tests/unit/test_cover": [],
    "tests/unit/test_part": [],
    "tests/unit/test_partition": [],
    "tests/unit/test_owners": [],
    "tests/unit/test_metis": ["tests/harness/partitioner"],
    "tests/unit/test_data": [],
    "tests/unit/test_data_mtx": [],
    "tests/unit/test_data_slices": [],
    "tests/unit/test_exchange": [],
    "tests/unit/test_frames": [],
    "tests/unit/test_faults": [],
    "tests/unit/test_threads": [],
    "tests/unit/test_wire": [],
    "tests/unit/test_aggregate": [],
    "tests/unit/test_aggregate_faults": [],
    "tests/unit/test_async": [],
    "tests/unit/test_async_faults": [],
    "tests/unit/test_adapt": [],
    "tests/unit/test_train_adapt": [],
    "tests/abi/test_arguments_mxm": [],
    "tests/abi/test_arguments_ranks": [],
    "tests/abi/test_arguments_sample": [],
    "tests/abi/test_arguments_train": [],
    "tests/abi/test_sizes": [],
    "tests/abi/test_misuse": [],
    "tests/unit/test_checked": ["tests/unit/modules/graft_kernel_wrong.so", "tests/unit/modules/graft_dense_wrong.so"],
    "tests/unit/test_cancel": ["tests/harness/partitioner"],
    "tests/unit/test_group": [],
    "tests/unit/test_halo": [],
    "tests/unit/test_model": [],
    "tests/unit/test_predict_list": [],
    "tests/unit/test_regression": [],
    "tests/unit/test_update": [],
    "tests/unit/test_update_edges": [],
    "tests/unit/test_nonfinite": [],
    "tests/unit/test_mesh_broken": [],
    "tests/unit/test_mesh_ranks": [],
    "tests/unit/test_mgn": [],
    "tests/unit/test_network_misuse": [],
    "tests/unit/test_network_state": [],
    "tests/unit/test_stream": [],
    "tests/mpi/test_mpi_openmpi": ["header"],
    "tests/mpi/test_mpi_mpich": ["header"],
}
THREADED = {
    "tests/unit/test_threads": [],
    "tests/unit/test_threads_memory": ["200"],
    "tests/unit/test_sampler": [],  # several threads call prefetch()
    "tests/unit/test_subgraphs": [],
    "tests/unit/test_exchange": [],
    "tests/unit/test_faults": [],
    "tests/unit/test_part": [],
    "tests/unit/test_aggregate": [],
    "tests/unit/test_async": [],
    "tests/unit/test_mxm": ["simd", "reference"],
    "tests/unit/test_gradient": ["gcn"],
    "tests/unit/test_group": [],
    "tests/unit/test_halo": [],
    "tests/unit/test_mesh_ranks": [],
    "tests/unit/test_mgn_ranks": [],
    "tests/unit/test_network_misuse": [],
    "tests/unit/test_workers": ["few"],  # not in the lists above, because the leak checker crashes at its exit
    "tests/unit/test_workers_ranks": ["few"],
    "tests/abi/test_callers": [],
}


class Lane:
    """One lane: a build, the programs that run in it, and their environment. A program ends at the first error that
    a sanitizer finds."""

    def __init__(self, programs, sanitizers, compiler, environment, options=(), prefix=()):
        self.programs, self.sanitizers, self.compiler = programs, sanitizers, compiler
        self.environment, self.options, self.prefix = environment, list(options), list(prefix)
        self.is_whole = False

    def lacks(self):
        return [word for word in self.compiler if shutil.which(word) is None]


def archer():
    """Find Archer, by which the thread sanitizer learns what OpenMP synchronizes. Without it, teams have one thread."""
    found = glob.glob("/usr/lib/llvm-19/lib/libarcher.so")
    return {"OMP_TOOL_LIBRARIES": found[0], "ARCHER_OPTIONS": "verbose=0"} if found else {"GRAFT_THREADS": "1"}


def lanes():
    suppressions = os.path.join(HERE, "threads.supp")
    # The sanitizer runtime of gcc 13 and older mistakes some thread-local memory for that of a glibc before 2.25. Its
    # search for leaks then sometimes crashes: https://github.com/google/sanitizers/issues/1322.
    sanitize = Lane(SANITIZED, "address,undefined", [], {
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:intercept_tls_get_addr=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "LSAN_OPTIONS": f"suppressions={os.path.join(HERE, 'leaks.supp')}:print_suppressions=0",
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"})
    # The thread sanitizer needs certain addresses, which are not free on systems with strong address randomization.
    threads = Lane(THREADED, "thread", ["clang-19"], {
        "TSAN_OPTIONS": f"halt_on_error=1:ignore_noninstrumented_modules=1:suppressions={suppressions}", **archer()},
        SMALL_AND_ALONE, ["setarch", "-R"] if shutil.which("setarch") else [])
    return {"sanitize": sanitize, "threads": threads}


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, **options)


def introspect(meson, what, folder):
    return json.loads(run([*meson, "introspect", f"--{what}", folder]).stdout)


def build(lane, source, folder, meson):
    """Build the lane. The result is None, or says what went wrong."""
    environment = dict(os.environ)
    if lane.compiler:
        ccache = ["ccache"] if shutil.which("ccache") else []
        environment["CC"] = " ".join(ccache + lane.compiler)
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        shutil.rmtree(folder, ignore_errors=True)
        done = run([*meson, "setup", folder, source, "-Dbuildtype=debugoptimized", "-Doptimization=1",
                    f"-Db_sanitize={lane.sanitizers}", *OPTIONS, *lane.options], env=environment)
    else:  # tests that were added later become targets only after this command
        done = run([*meson, "setup", "--reconfigure", folder, source], env=environment)
    if done.returncode != 0:
        return done.stdout
    targets = {os.path.splitext(target)[0] for program, arguments in lane.programs.items()
               for target in [program, *arguments] if target.startswith("tests/")}
    # Programs load the library and its modules, so these are built too.
    targets |= {target["name"] for target in introspect(meson, "targets", folder)
                if target["installed"] and target["type"].startswith("shared")}
    done = run([*meson, "compile", "-C", folder, "--jobs", "2", *([] if lane.is_whole else sorted(targets))],
               env=environment)
    return done.stdout if done.returncode != 0 else None


def commands(lane, folder, meson, names):
    """The commands to run: programs with their arguments, by their paths in the build."""
    listed = [[program, *arguments] for program, arguments in lane.programs.items()]
    if not lane.is_whole:
        return listed
    known = {os.path.basename(words[0]) for words in listed}
    for test in introspect(meson, "tests", folder):
        words = [os.path.relpath(word, folder) if word.startswith(folder) else word for word in test["cmd"]]
        if words[0].startswith("tests/unit/") and os.path.basename(words[0]) not in known:
            listed.append(words)
    return [words for words in listed if names == ["all"] or os.path.basename(words[0]) in names]


def test(lane, folder, command):
    """Run a program. The result is its duration in seconds and a list of lines that say what is wrong, which is
    empty if nothing is."""
    began = time.monotonic()
    wrong = faults(lane, folder, *command)
    return time.monotonic() - began, wrong


def faults(lane, folder, program, *arguments):
    environment = {**os.environ, **lane.environment, "OMP_WAIT_POLICY": "passive", "GRAFT_TEST_FEWER": "10",
                   "GRAFT_LIBRARY": os.path.join(folder, "libgraft.so")}
    arguments = [os.path.join(folder, word) if word.startswith("tests/") else word for word in arguments]
    launcher = []
    if program.startswith("tests/mpi/"):
        launcher = [shutil.which("mpiexec." + program.rsplit("_", 1)[1]), "-n", "2"]
        # Without frame pointers in the MPI library, only the slow unwinder finds the caller of an allocation.
        environment["ASAN_OPTIONS"] += ":fast_unwind_on_malloc=0"
    try:
        done = run([*lane.prefix, *launcher, os.path.join(folder, program), *arguments], env=environment, timeout=1800)
    except subprocess.TimeoutExpired:
        return ["it ran for more than 1800 seconds"]
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if line.startswith("not ok") or "runtime error:" in line]
    for number, line in enumerate(lines):
        if re.search(r"(ERROR|WARNING): \w+Sanitizer|assertion failed", line):
            wrong += lines[number:number + 30]
            break
    if not wrong and (done.returncode != 0 or not any(re.match(r"1\.\.[1-9]", line) for line in lines)):
        wrong = [f"it ended with {done.returncode}", *lines[-10:]]
    return wrong


def main():
    name, source, build_root, *meson = sys.argv[1:5]
    lane = lanes()[name]
    names = sys.argv[5:]
    lane.is_whole = bool(names)
    if lane.lacks():
        tap.skip(f"the build of lane '{name}'", f"{', '.join(lane.lacks())} is not installed")
        return tap.done()
    folder = os.path.join(os.path.abspath(build_root), name)
    fault = build(lane, source, folder, meson)
    if not tap.ok(not fault, f"the build of lane '{name}'", *(fault.splitlines()[-40:] if fault else [])):
        return tap.done()
    chosen = commands(lane, folder, meson, names)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:  # some programs wait
        for command, (seconds, wrong) in zip(chosen, pool.map(lambda command: test(lane, folder, command), chosen)):
            tap.ok(not wrong, f"{' '.join(map(os.path.basename, command))}, {seconds:.0f} s", *wrong[:40])
    return tap.done()


main()
