#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests with fewer instruction sets: sets.py BUILD-ROOT MESON [PROGRAM...]. Prints TAP.

  own        programs, by the public functions, with a library that does not use the highest sets of the processor
  foreign    programs with dense modules, and variables by which their libraries choose loops for other processors
The default is the programs of OWN and FOREIGN, with few cases. A PROGRAM is a unit test, and may have other arguments,
separated by blanks; "all" means all unit tests."""
import concurrent.futures
import os
import re
import subprocess
import sys

import tap
from unit_tests import run, tests_of

# Tests of the code that has loops for each instruction set: products, edge operators, models, random draws, caches,
# codecs, networks.
OWN = ["test_mxm", "test_edge", "test_gradient gat", "test_sampler", "test_caches_state", "test_codec", "test_network"]
SETS = {"0": "the least that all processors have", "1": "AVX2"}
# Tests that compare products bitwise, or that use plain loops instead of a module.
FOREIGN = ["test_mgn", "test_mgn_ranks", "test_gradient mlp", "test_predict_list"]
# For each library: a variable, its values with what the library then reports, the module, the library, and the code
# that asks it.
LIBRARIES = [
    ("OPENBLAS_CORETYPE", {name: name for name in ("Haswell", "SkylakeX", "Zen", "Prescott")}, "cblas", "libopenblas",
     "f = l.openblas_get_corename; f.restype = ctypes.c_char_p; print(f().decode())"),
    ("ONEDNN_MAX_CPU_ISA", {"SSE41": "1", "AVX2": "7"}, "onednn", "libdnnl", "print(l.dnnl_get_effective_cpu_isa())"),
]


def run_one(build, tests, words, environment):
    """Run one test. The option that selects the module is not set for programs whose arguments are modules."""
    name, *arguments = words.split()
    test = tests[name]
    command = [test["cmd"][0], *arguments] if arguments else test["cmd"]
    if any(word.endswith(".so") for word in command):
        environment = {name: value for name, value in environment.items() if name != "GRAFT_DENSE_MODULE"}
    return run(build, dict(test, cmd=command), **environment)


def run_all(kind, build, tests, names, environment):
    """Run programs in parallel, because some wait."""
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, fault in zip(names, pool.map(lambda name: run_one(build, tests, name, environment), names)):
            tap.ok(fault is None, f"{kind}: {name}", *(fault or []))


def kernels(build, library, environment):
    """The names of those kernels of a library that have loops for each instruction set."""
    listed = subprocess.run([os.path.join(build, "graft-info"), "--library", library], capture_output=True, text=True,
                            env=dict(os.environ, **environment), check=False).stdout
    return re.findall(r"kernel +simd\.?(\w*) +(\d+)", listed)


def check_own(build, tests, names):
    library = os.path.join(build, "tests", "lanes", "libgraft_limited.so")
    all_of_it = kernels(build, library, {})
    for least, (limit, words) in enumerate(SETS.items(), 1):
        environment = {"GRAFT_LIBRARY": library, "GRAFT_TEST_ISA": limit, "GRAFT_MODULE_PATH": build}
        found = kernels(build, library, environment)
        if len(all_of_it) <= least:
            tap.skip(f"own sets, at most {words}", "this processor has no more")
        elif tap.ok(len(found) == least and found[0][1] == str(100 + least), f"own sets, at most {words}: the higher "
                    "ones are off", found):
            run_all(f"own sets, at most {words}", build, tests, names, environment)


def answer(module, library, code, environment):
    """What the library behind a module reports about itself, or the reason why it reports nothing."""
    linked = subprocess.run(["ldd", module], capture_output=True, text=True, check=False).stdout
    path = re.search(rf"=> (\S*{library}\S*)", linked)
    if path is None:
        return f"{os.path.basename(module)} is not linked with {library}"
    code = f"import ctypes; l = ctypes.CDLL('{path.group(1)}'); {code}"
    return subprocess.run([sys.executable, "-c", code], env=dict(os.environ, **environment), capture_output=True,
                          text=True, check=False).stdout.strip()


def check_foreign(build, tests, names):
    for variable, values, module, library, code in LIBRARIES:
        path = os.path.join(build, f"graft_dense_{module}.so")
        if not os.path.exists(path):
            tap.skip(f"module {module}", "it was not built")
            continue
        for value, expected in values.items():
            found = answer(path, library, code, {variable: value})
            if found != expected:
                tap.skip(f"{variable}={value}", f"the library says {found!r}, not {expected!r}")
                continue
            tap.ok(True, f"{variable}={value}: the library has taken it")
            run_all(f"{variable}={value}", build, tests, names, {variable: value, "GRAFT_DENSE_MODULE": module})


def main(build, meson, *programs):
    build = os.path.abspath(build)
    tests = tests_of(build, meson)
    chosen = list(tests) if "all" in programs else list(programs)
    check_own(build, tests, chosen or OWN)
    check_foreign(build, tests, chosen or FOREIGN)
    tap.done()


if __name__ == "__main__":
    main(*sys.argv[1:])
