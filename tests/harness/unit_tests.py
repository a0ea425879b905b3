# SPDX-License-Identifier: Apache-2.0
"""Runs the unit tests of a build again in another environment, for the lanes."""
import json
import os
import subprocess


def tests_of(build, meson):
    listed = json.loads(subprocess.run([meson, "introspect", "--tests", build], check=True, capture_output=True,
                                       text=True).stdout)
    return {test["name"].split("/")[-1]: test for test in listed
            if test["name"].startswith("unit/") and os.path.dirname(test["cmd"][0]).endswith("tests/unit")}


def run(build, test, **environment):
    """Run one test. The result is None, or a list of lines that say what went wrong."""
    fewer = {"GRAFT_TEST_FEWER": os.environ.get("GRAFT_TEST_FEWER", "20")}
    try:
        ended = subprocess.run(test["cmd"], env={**os.environ, **test["env"], **fewer, **environment}, cwd=build,
                               timeout=600, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace")
    except subprocess.TimeoutExpired:
        return ["it did not end within 600 s"]
    lines = ended.stdout.splitlines()
    if ended.returncode:
        return [f"it ended with {ended.returncode}"] + lines[-3:]
    return [line for line in lines if line.startswith("not ok")] or None
