# SPDX-License-Identifier: Apache-2.0
"""Checks graft-check: test_graft_check.py GRAFT-CHECK LIBRARY ROOT. The kernel of examples/module is built outside
of the tree with copies of the headers and must pass. Each mutant of it, which is wrong in one place, must be found."""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

import tap

TIMEOUT = 300
RETURN = "    return GRAFT_OK; /* without"
INCLUDE = "#include <stdio.h>\n"
# Mutants of the kernel: what is wrong, the text that is replaced, its replacement, and words of the expected line.
MUTANTS = [
    ("ignores the mask", [("if (!is_allowed(args->mask, i, j))", "if (0)")], "plus_times, float"),
    ("ignores the complement of a mask", [(" != ((mask->flags & GRAFT_MASK_COMPLEMENT) != 0)", "")], "float"),
    ("adds where it should overwrite", [("else *c = z;", "else *c += z;")], "plus_second, float"),
    ("writes behind an element", [("else *c = z;", "else c[0] = c[1] = z;")], "plus_times, float"),
    ("ignores the stride", [("i * args->c->stride + j", "i * args->c->n_cols + j")], "plus_times, float"),
    ("divides by the number of no neighbours", [("scale != NULL && a->row_ptr[i] < end", "scale != NULL")], "float"),
    ("drops the last entry of a row", [("e < end; e++", "e + 1 < end; e++")], "plus_second, float"),
    ("claims epilogues", [("args->epilogue == NULL", "1")], "epilogues"),
    ("prints", [(RETURN, '    puts("done");\n' + RETURN)], "it prints nothing"),
    ("installs a handler", [(INCLUDE, INCLUDE + "#include <signal.h>\n"),
                            (RETURN, "    signal(SIGUSR1, SIG_IGN);\n" + RETURN)], "leaves settings"),
    ("leaves threads", [(INCLUDE, INCLUDE + "#include <pthread.h>\n#include <unistd.h>\nstatic void *rest(void *arg)\n"
                         "{\n    pause();\n    return arg;\n}\n"),
                        (RETURN, "    static int made;\n    pthread_t thread;\n    if (made++ < 60) "
                         "pthread_create(&thread, NULL, rest, NULL);\n" + RETURN)], "leaves no more threads"),
    ("refuses when it is late", [(RETURN, "    if (args->flags == 0) return GRAFT_ERR_UNSUPPORTED;\n" + RETURN)],
     "plus_times, float"),
    ("crashes", [(RETURN, "    if (args->mask != NULL) *(volatile int *)0 = 1;\n" + RETURN)], "Bail out!"),
    ("exits", [(INCLUDE, INCLUDE + "#include <stdlib.h>\n"),
               (RETURN, "    if (args->mask != NULL) exit(0);\n" + RETURN)], "ends the process: exit(0)"),
    ("returns no status", [(RETURN, "    return 7; /* without")], "plus_second, float"),
    ("has another preference in its note", [('"example", PREFERENCE)', '"example", PREFERENCE + 1)')],
     "is a module that can be used here"),
]


def build(folder, name, source, link=("-Wl,-z,nodelete",)):
    """Compile a module. The result is its path, or the message of the compiler."""
    os.makedirs(f"{folder}/{name}")
    module, path = f"{folder}/{name}/graft_kernel_example.so", f"{folder}/{name}/kernel.c"
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    done = subprocess.run(["cc", "-std=gnu11", "-O1", "-w", "-I", f"{folder}/include", "-fPIC", "-fvisibility=hidden",
                           "-shared", *link, "-o", module, path], capture_output=True, text=True, check=False)
    return (module, "") if done.returncode == 0 else (None, done.stderr)


def judge(*args):
    return subprocess.run([program, "--library", library, *args], capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)


def failures(result):
    return [line for line in result.stdout.splitlines() if line.startswith(("not ok", "Bail out!"))]


def try_mutant(folder, number, source):
    name, edits, words = MUTANTS[number]
    for old, new in edits:
        if source.count(old) != 1:
            return (name, words, None, f"'{old}' stands {source.count(old)} times in kernel.c")
        source = source.replace(old, new)
    module, said = build(folder, f"mutant{number}", source)
    return (name, words, judge(module) if module else None, said)


def test_mutants(folder, source):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, words, result, said in pool.map(lambda n: try_mutant(folder, n, source), range(len(MUTANTS))):
            lines = failures(result) if result else []
            tap.ok(result and result.returncode == 1 and any(words in line for line in lines),
                   f"a kernel that {name} is found", said, *lines, *(result.stderr.splitlines() if result else []))


def test_example(folder, source):
    lines = source.count("\n")
    tap.ok(lines <= 100, f"the example has {lines} lines, at most 100")
    module, said = build(folder, "example", source)
    result = judge(module) if module else None
    tap.ok(result and result.returncode == 0 and not failures(result) and result.stderr == "" and
           "ok" in result.stdout and "kernel example ran" in result.stdout, "the example passes", said,
           result.stdout if result else "", result.stderr if result else "")
    tap.ok(result and "max_times, float: not supported" in result.stdout, "what it does not support is skipped")
    note = next(line for line in source.splitlines() if line.startswith("GRAFT_MODULE_NOTE("))
    module, said = build(folder, "noteless", source.replace(note, ""))
    result = judge(module) if module else None
    tap.ok(result and result.returncode == 0 and "# SKIP it has no note" in result.stdout,
           "a kernel without a note passes too", said, result.stdout if result else "")
    module, said = build(folder, "deletable", source, ())
    result = judge(module) if module else None
    tap.ok(result and result.returncode == 1 and any("nodelete" in line for line in failures(result)),
           "one that could be unloaded is found", said, result.stdout if result else "")


def test_make(folder):
    """Build the module as its README says, with copies of the headers."""
    if shutil.which("make") is None:
        tap.skip("make builds the example", "make is not installed")
        return
    shutil.copytree(f"{root}/examples/module", f"{folder}/make")
    done = subprocess.run(["make", "-C", f"{folder}/make", f"GRAFT_CFLAGS=-I{folder}/include"], capture_output=True,
                          text=True, check=False)
    tap.ok(done.returncode == 0 and "warning" not in done.stderr and
           os.path.exists(f"{folder}/make/graft_kernel_example.so"), "make builds the example", done.stdout,
           done.stderr)


def test_hang(folder, source):
    loop = source.replace(RETURN, "    for (volatile int i = 0; i < 1;) {}\n" + RETURN)
    module, said = build(folder, "loop", loop)
    result = judge("--timeout", "2", module) if module else None
    tap.ok(result and result.returncode == 1 and "hangs" in result.stdout, "a kernel that hangs is found", said,
           result.stdout[-500:] if result else "")


def test_refusals(folder):
    for name, args, status in (("a missing file", (f"{folder}/none.so",), 2), ("no file", (), 2),
                               ("a file that is no module", (__file__,), 1), ("--nonsense", ("--nonsense",), 2),
                               ("a bad --timeout", ("--timeout", "0", "x.so"), 2)):
        result = judge(*args)
        tap.ok(result.returncode == status, f"{name}: exit status {status}", result.returncode, result.stdout,
               result.stderr)
    tap.ok(judge("--help").stdout.startswith("usage:"), "--help")


program, library, root = map(os.path.abspath, sys.argv[1:4])
with tempfile.TemporaryDirectory(prefix="graft-check-") as base:
    shutil.copytree(f"{root}/abi", f"{base}/include")
    with open(f"{root}/examples/module/kernel.c", encoding="utf-8") as kernel:
        text = kernel.read()
    test_make(base)
    test_example(base, text)
    test_refusals(base)
    test_hang(base, text)
    test_mutants(base, text)
tap.done()
