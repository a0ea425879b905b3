# SPDX-License-Identifier: Apache-2.0
"""The C and C++ compilers and language standards with which the headers of abi/ must compile."""
import shutil
import subprocess

C = {"gcc": ["c11", "c17", "c2x"], "clang": ["c11", "c17", "c2x"]}
CXX = {"g++": ["c++17", "c++20"], "clang++": ["c++17", "c++20"]}
OLDER = {"c": ["c99"], "c++": ["c++11", "c++14"]}  # older standards, by which the headers must compile without a host
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def is_there(name):
    return shutil.which(name) is not None


def run(command, text=None):
    """Run a compiler on a text. The result is a pair: whether it succeeded, and everything it printed."""
    result = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False)
    return result.returncode == 0, result.stdout + result.stderr
