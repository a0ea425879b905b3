#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests of numbers, files and arguments once more, in a build with the address and undefined-behaviour sanitizers:
sanitize.py SOURCE-ROOT BUILD-ROOT MESON. Prints TAP, one line per program."""
import concurrent.futures
import os
import re
import subprocess
import sys

# Target, and the arguments it is run with.
PROGRAMS = {
    "tests/unit/test_mxm": [],
    "tests/unit/test_epilogue": ["tests/unit/graft_kernel_wrong.so"],
    "tests/unit/test_gradient": [],
    "tests/unit/test_edge": [],
    "tests/unit/test_codec": [],
    "tests/unit/test_cover": [],
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
    "tests/unit/test_train_async": [],
    "tests/unit/test_adapt": [],
    "tests/unit/test_train_adapt": [],
    "tests/abi/test_arguments_mxm": [],
    "tests/abi/test_arguments_ranks": [],
    "tests/abi/test_arguments_train": [],
    "tests/abi/test_sizes": [],
}
# What the libraries behind the modules keep for the life of the process is theirs; leaks of our own are counted by the
# hosts of the other tests. A finding of the undefined-behaviour sanitizer ends the program, so that it is seen.
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "OMP_WAIT_POLICY": "passive",
}


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, **options)


def build(source, folder, meson):
    """None, or what went wrong."""
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        done = run([*meson, "setup", folder, source, "-Dbuildtype=debugoptimized", "-Db_sanitize=address,undefined",
                    "-Db_lundef=false", "-Dgraft-train=disabled", "-Dsanitize_lane=false"])
        if done.returncode != 0:
            return done.stdout
    done = run([*meson, "compile", "-C", folder])
    return done.stdout if done.returncode != 0 else None


def test(folder, program, arguments):
    """What is wrong with one program, as lines; none if all is right."""
    environment = {**os.environ, **ENVIRONMENT, "GRAFT_LIBRARY": os.path.join(folder, "libgraft.so")}
    arguments = [os.path.join(folder, argument) for argument in arguments]
    try:
        done = run([os.path.join(folder, program), *arguments], env=environment, timeout=900)
    except subprocess.TimeoutExpired:
        return ["it ran for more than 900 seconds"]
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if line.startswith("not ok") or "ERROR: AddressSanitizer" in line or
             "runtime error:" in line]
    if not wrong and (done.returncode != 0 or not any(re.match(r"1\.\.[1-9]", line) for line in lines)):
        wrong = [f"it ended with {done.returncode}", *lines[-10:]]
    return wrong


def main():
    source, build_root = sys.argv[1:3]
    folder = os.path.join(build_root, "sanitize")
    fault = build(source, folder, sys.argv[3:])
    print(f"{'not ' if fault else ''}ok 1 - the build with sanitizers")
    if fault:
        print("\n".join("# " + line for line in fault.splitlines()[-40:]))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = pool.map(lambda one: ["not built"] if fault else test(folder, *one), PROGRAMS.items())
        for number, (program, wrong) in enumerate(zip(PROGRAMS, found), 2):
            print(f"{'not ' if wrong else ''}ok {number} - {os.path.basename(program)}", flush=True)
            print("".join(f"# {line}\n" for line in wrong[:20]), end="", flush=True)
    print(f"1..{len(PROGRAMS) + 1}")


main()
