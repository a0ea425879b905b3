# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs hosts in C++ with the headers of adapters/cxx: test_cxx.py ROOT LIBRARY [LAUNCHER]."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import compilers
import small_data
import tap

ROOT, LIBRARY = sys.argv[1:3]
FOLDERS = [f"-I{ROOT}/{folder}" for folder in ("abi", "adapters/cxx", "adapters/mpi", "tests")]


def output(command, **variables):
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                            check=False, env=os.environ | variables)
    return result.returncode, result.stdout


def test_headers(folder):
    with open(f"{folder}/header.cpp", "w", encoding="utf-8") as file:
        file.write('#include "graft.hpp"\n')
    for compiler, standards in compilers.CXX.items():
        if not compilers.is_there(compiler):
            tap.skip(f"headers with {compiler}", "it is not installed")
            continue
        for standard in "c++11", standards[-1]:
            good, text = compilers.run([compiler, "-std=" + standard, *compilers.STRICT, "-Wshadow", "-fsyntax-only",
                                        *FOLDERS, file.name])
            tap.ok(good, f"the headers compile with {compiler} as {standard}", text)


def test_host(folder, name, *arguments):
    binary = f"{folder}/host"
    code, text = output(["g++", "-std=c++11", *compilers.STRICT, "-g", "-fsanitize=address,undefined", *FOLDERS,
                         f"{ROOT}/tests/hosts/{name}.cpp", "-o", binary, "-ldl", "-lpthread"])
    if tap.ok(code == 0, f"{name} is compiled", text):
        code, text = output([binary, LIBRARY, *arguments])
        tap.ok(code == 0 and "not ok" not in text and "1.." in text, "it is content, and leaves no memory", code, text)


def test_training_example(folder):
    code, text = output(["g++", "-std=c++11", *compilers.STRICT, *FOLDERS, f"{ROOT}/adapters/cxx/train.cpp", "-o",
                         f"{folder}/train", "-ldl"])
    if tap.ok(code == 0, "the example that trains is compiled", text):
        code, text = output([f"{folder}/train", f"{folder}/data", f"{folder}/written"],
                            LD_LIBRARY_PATH=os.path.dirname(LIBRARY))
        accuracy = re.fullmatch(r"300 vertices, test accuracy ([0-9.]+)\n", text)
        tap.ok(code == 0 and accuracy and float(accuracy[1]) > 0.8 and os.path.getsize(f"{folder}/written") > 1000,
               "it trains, and writes the model", code, text)
        code, text = output([f"{folder}/train", "/nowhere", f"{folder}/other"],
                            LD_LIBRARY_PATH=os.path.dirname(LIBRARY))
        tap.ok(code == 1 and "/nowhere" in text, "without the data it says so", code, text)


def test_example(folder, launcher):
    if shutil.which("mpicxx.openmpi") is None:
        tap.skip("ranks over MPI", "Open MPI is not installed")
        return
    code, text = output(["mpicxx.openmpi", "-Wall", "-Wextra", "-Werror", "-DOMPI_SKIP_MPICXX", *FOLDERS,
                         f"{ROOT}/adapters/cxx/example.cpp", "-o", f"{folder}/example", "-ldl"])
    if tap.ok(code == 0, "the example of the manual is compiled", text):
        code, text = output([launcher, "-n", "3", f"{folder}/example"], LD_LIBRARY_PATH=os.path.dirname(LIBRARY))
        sums = sorted(float(word) for word in text.split())
        tap.ok(code == 0 and sums == sorted((v - 1) % 12 + (v + 1) % 12 for v in range(12)), "and runs", code, text)


with tempfile.TemporaryDirectory(prefix="graft-cxx-") as base:
    if compilers.is_there("g++"):
        test_headers(base)
        test_host(base, "test_cxx")
        small_data.make_dataset(f"{base}/data")
        test_host(base, "test_cxx_train", f"{base}/data", base)
        test_training_example(base)
        if len(sys.argv) > 3:
            test_example(base, sys.argv[3])
    else:
        tap.skip("hosts in C++", "g++ is not installed")
tap.done()
