#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the single checks in the log of a test run: count.py testlog.json STATUS-OF-MESON. Meson counts programs;
this script counts the lines "ok" and "not ok" that they printed. A program without such lines is one check. A
program that crashed, hung, or stopped before all planned checks is one more failed check. The log is testlog.json,
because in meson 1.0 the JUnit file shows neither a hang nor a crash after the first line, and is not always valid
XML."""
import collections
import json
import re
import sys

POINT = re.compile(r"(not )?ok \d+\b")
PLAN = re.compile(r"^1\.\.\d+", re.MULTILINE)
SKIPPED = re.compile(r"#\s*skip\S*\s*(.*)", re.IGNORECASE)
NOTHING_PLANNED = re.compile(r"^1\.\.0\b(.*)", re.MULTILINE)
SKIP_STATUS = 77
STDERR_LINES = 15


class Totals:
    def __init__(self):
        self.passed = self.failed = 0
        self.reasons = collections.Counter()  # the reasons of skipped checks


def skip_reason(text):
    match = SKIPPED.search(text)
    return match.group(1).strip() if match and match.group(1).strip() else "no reason given"


def read_points(output):
    """Read the output of one program: the number of checks that passed, the reasons of those skipped, and those that
    failed, each with the comment lines that follow it."""
    passed, reasons, failures, after_failure = 0, [], [], False
    for line in output.splitlines():
        if line.startswith("#") and after_failure:
            failures[-1] += "\n" + line
            continue
        match = POINT.match(line)
        after_failure = bool(match and match.group(1))
        if after_failure:
            failures.append(line)
        elif match and SKIPPED.search(line):
            reasons.append(skip_reason(line))
        elif match:
            passed += 1
    return passed, reasons, failures


def show_failure(test, failures, broken):
    result = {"OK": "ended without a plan", "SKIP": "printed nothing"}.get(test["result"], test["result"])
    print(f"\n{test['name']}: {result}, exit status {test['returncode']}")
    lines = "\n".join(failures).splitlines()
    if broken:
        lines.append("the last line it printed: " + (test.get("stdout", "").splitlines() or ["none"])[-1])
        lines += test.get("stderr", "").strip().splitlines()[-STDERR_LINES:]
    for line in lines:
        print("   ", line)


def count_test(test, totals):
    output, result, status = test.get("stdout", ""), test["result"], test["returncode"]
    passed, reasons, failures = read_points(output)
    nothing = NOTHING_PLANNED.search(output)
    broken = False
    if result == "EXPECTEDFAIL":
        passed, reasons, failures = 1, [], []
    elif result == "SKIP":
        broken = not reasons and not nothing and status != SKIP_STATUS  # the program printed nothing, not even a reason
        if not reasons and not broken:
            reasons = [skip_reason(nothing.group(1) if nothing else test.get("stderr", ""))]
    elif result == "OK":
        points = passed + len(reasons) + len(failures)
        passed += not points
        broken = points > 0 and not PLAN.search(output)  # the program ended before all planned checks, with status 0
    else:
        broken = not failures or result != "FAIL" or status < 0
    totals.passed += passed
    totals.failed += len(failures) + broken
    totals.reasons.update(reasons)
    if failures or broken:
        show_failure(test, failures, broken)


def main():
    path, status = sys.argv[1], int(sys.argv[2])
    totals = Totals()
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                count_test(json.loads(line), totals)
    except FileNotFoundError:
        print(f"No test ran: there is no {path}")
    if status != 0 and totals.failed == 0:
        print(f"meson ended with status {status}, which counts as a failure")
        totals.failed = 1
    for reason, count in totals.reasons.most_common():
        print(f"{count} skipped: {reason}")
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.reasons.total()} skipped")
    sys.exit(totals.failed > 0 or totals.passed == 0)


if __name__ == "__main__":
    main()
