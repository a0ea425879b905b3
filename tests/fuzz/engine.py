#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the fuzz targets with libFuzzer and runs all of them in parallel: engine.py SOURCE-ROOT BUILD-ROOT MESON
[LIMIT [TARGET...]]. Prints TAP, one line per target, with its number of executions and its coverage. LIMIT is a
number of seconds (20s) or of executions (10000000) for each target; the default is 10s. TARGETs are keys of the
table below; the default is all. The build stays in BUILD-ROOT/fuzz. Inputs that reach new code are kept in
BUILD-ROOT/fuzz/found/TARGET, and a later run starts with them. Inputs that fail are kept in BUILD-ROOT/fuzz/failed."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIONS = ["-Dbuildtype=debugoptimized", "-Doptimization=1", "-Db_sanitize=address,undefined", "-Db_lundef=false",
           "-Dfuzz_engine=true", "-Dsanitize_lane=false", "-Dcblas=disabled", "-Donednn=disabled", "-Dmpi=disabled",
           "-Dmetis=disabled", "-Dgraft-train=disabled"]
# The program of each target, and its options of libFuzzer.
TARGETS = {
    "npy": ("data", "-max_len=4096"),
    "mtx": ("data", "-max_len=1024", f"-dict={HERE}/data.dict"),
    "folder": ("folder", "-max_len=4096"),
    "model": ("model", "-max_len=8192"),
    "mesh": ("mesh", "-max_len=1024"),
    "network": ("network", "-max_len=512"),
    "owners": ("owners", "-max_len=256"),
    "frame": ("frame", "-max_len=1024"),
    "options": ("options", "-max_len=512"),
    "graphblas": ("graphblas", "-max_len=2048"),
    "calls": ("calls", "-max_len=512"),
}
# The threads of OpenMP and the libraries behind modules live as long as the process. The allocator of each target finds
# the library's own leaks.
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_abort=1:quarantine_size_mb=32",
               "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "OMP_WAIT_POLICY": "passive",
               "GRAFT_THREADS": "1"}


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, **options)


def missing():
    """The reason why libFuzzer cannot be used, or None."""
    if shutil.which("clang-19") is None:
        return "clang-19 is not installed"
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/empty.c", "w") as file:
            file.write("int LLVMFuzzerTestOneInput(const char *bytes, unsigned long count);\n"
                       "int LLVMFuzzerTestOneInput(const char *bytes, unsigned long count)\n"
                       "{\n    return !bytes && count;\n}\n")
        done = run(["clang-19", "-fsanitize=fuzzer,address", f"{folder}/empty.c", "-o", f"{folder}/empty"])
    return None if done.returncode == 0 else "clang-19 has no libFuzzer: package libclang-rt-19-dev"


def build(source, folder, meson, programs):
    """Build the targets. The result is None, or says what went wrong."""
    environment = dict(os.environ, CC="ccache clang-19" if shutil.which("ccache") else "clang-19")
    again = ["--reconfigure"]  # an older configuration may not have all targets
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        shutil.rmtree(folder, ignore_errors=True)
        again = []
    done = run([*meson, "setup", *again, folder, source, *OPTIONS], env=environment)
    if done.returncode != 0:
        return done.stdout
    targets = [f"tests/fuzz/fuzz_{program}" for program in sorted(programs)]
    with open(f"{folder}/build.ninja") as file:
        modules = ["graft_kernel_graphblas"] if "graft_kernel_graphblas.so:" in file.read() else []
    done = run([*meson, "compile", "-C", folder, "--jobs", "2", "graft", *modules, *targets], env=environment)
    return done.stdout if done.returncode != 0 else None


def fuzz(folder, target, limit):
    """Run a target. The result is a list of lines that say what is wrong, and a summary."""
    program, *options = TARGETS[target]
    found, failed = f"{folder}/found/{target}", f"{folder}/failed"
    os.makedirs(found, exist_ok=True)
    os.makedirs(failed, exist_ok=True)
    limit = f"-max_total_time={limit[:-1]}" if limit.endswith("s") else f"-runs={limit}"
    inputs = f"{HERE}/corpus_{target}"
    command = [f"{folder}/tests/fuzz/fuzz_{program}", found, inputs, limit, *options, "-seed=1", "-timeout=30",
               "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={failed}/{target}-"]
    done = run(command, env={**os.environ, **ENVIRONMENT, "GRAFT_LIBRARY": f"{folder}/libgraft.so"})
    count = re.search(r"stat::number_of_executed_units: (\d+)", done.stdout)
    last = re.findall(r"cov: (\d+) ft: (\d+) corp: (\S+)", done.stdout)
    summary = "no executions"
    if count and last:
        summary = f"{count[1]} executions, {last[-1][0]} edges, {last[-1][1]} features, {last[-1][2]} inputs"
    if done.returncode == 0 and count:
        return [], summary
    lines = done.stdout.splitlines()
    first = next((number for number, line in enumerate(lines)
                  if re.search(r"ERROR|runtime error|deadly signal", line)), len(lines) - 20)
    return [f"it ended with {done.returncode}", *lines[max(first - 3, 0):first + 40],
            *[line for line in lines if "Test unit written" in line]], summary


def main():
    source, build_root, *meson = sys.argv[1:4]
    limit = sys.argv[4] if len(sys.argv) > 4 else "10s"
    targets = sys.argv[5:] or list(TARGETS)
    reason = missing()
    if reason:
        tap.skip("the fuzz targets", reason)
        return tap.done()
    folder = os.path.join(build_root, "fuzz")
    fault = build(source, folder, meson, {TARGETS[target][0] for target in targets})
    if not tap.ok(not fault, "the targets are built", *(fault.splitlines()[-40:] if fault else [])):
        return tap.done()
    with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
        for target, (wrong, summary) in zip(targets, pool.map(lambda target: fuzz(folder, target, limit), targets)):
            tap.ok(not wrong, f"{target}: {summary}", *wrong)
    return tap.done()


main()
