#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tests of the Python package as TAP: run.py FILE... Each test of pytest is one line. A test that needs a
package which is not installed is skipped with the reason."""
import importlib
import sys

import tap

try:
    for needed in ("cffi", "numpy", "pytest"):
        importlib.import_module(needed)
    import pytest
except ImportError as error:
    tap.skip("the Python package", f"there is no {error.name} (python3-cffi, python3-numpy, python3-pytest)")
    tap.done()
    sys.exit(0)


class Reporter:
    """Prints a line for each test."""

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report):
        name = report.nodeid.split("::", 1)[-1]
        if report.skipped:
            tap.skip(name, report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)
        elif report.when == "call" or report.failed:
            tap.ok(report.passed, f"{name} ({report.when})" if report.when != "call" else name, report.longreprtext)

    @pytest.hookimpl
    def pytest_collectreport(self, report):
        if report.skipped:
            tap.skip(report.nodeid, report.longrepr[-1])
        elif report.failed:
            tap.ok(False, f"{report.nodeid} is collected", report.longreprtext)


status = pytest.main(["-p", "no:terminal", "-p", "no:cacheprovider", "--rootdir", sys.path[0], *sys.argv[1:]],
                     plugins=[Reporter()])
tap.done()
sys.exit(0 if status in (0, 1, 5) else int(status))
