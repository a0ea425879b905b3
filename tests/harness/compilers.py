# SPDX-License-Identifier: Apache-2.0
"""The compilers that must accept the headers."""
import shutil
import subprocess

C = {"gcc": ["c11", "c17", "c2x"], "clang": ["c11", "c17", "c2x"]}
CXX = {"g++": ["c++17", "c++20"], "clang++": ["c++17", "c++20"]}
OLDER = {"c": ["c99"], "c++": ["c++11", "c++14"]} # headers only
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def is_there(name):
    return shutil.which(name) is not None


def run(command, text=None):
    """(worked, everything it printed)"""
    result = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False)
    return result.returncode == 0, result.stdout + result.stderr
