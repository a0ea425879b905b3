# SPDX-License-Identifier: Apache-2.0
"""Checks that threads of the host may run on the same processors before and after Graft is loaded and called,
whatever binding OpenMP is asked for: test_affinity.py ROOT BUILD HOST PYTHON [LAUNCHER...]. PYTHON is an interpreter
that has cffi, or "none"."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

ROOT, BUILD, HOST, PYTHON = sys.argv[1:5]
LIBRARY = f"{BUILD}/libgraft.so"
HERE = sorted(os.sched_getaffinity(0))
CLOSE = {"OMP_PLACES": "cores", "OMP_PROC_BIND": "close"}
BINDINGS = [CLOSE, {"OMP_PLACES": "threads"}, {"OMP_PROC_BIND": "spread"}, {"OMP_PROC_BIND": "master"},
            {"GOMP_CPU_AFFINITY": str(HERE[-1])}]
PYTHON_HOST = """
import os
import threading
import numpy
import scipy.sparse
before = sorted(os.sched_getaffinity(0))
import graft
context = graft.Context(threads=2)
def call():
    graft.aggregate(scipy.sparse.eye(4000, format="csr", dtype=numpy.float32), numpy.ones((4000, 64), numpy.float32),
                    context=context)
    print("kept" if sorted(os.sched_getaffinity(0)) == before else "changed")
call()
thread = threading.Thread(target=call)
thread.start()
thread.join()
print(len(os.listdir("/proc/self/task")), "threads")
"""
FORTRAN_HOST = """
program host
   use graft
   type(graft_context) :: context
   character(len=4096) :: path
   call execute_command_line("grep Cpus_allowed: /proc/self/status")
   call get_command_argument(1, path)
   call context%open(trim(path))
   call execute_command_line("grep Cpus_allowed: /proc/self/status")
end program
"""


def output(command, binding, folder=None):
    result = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=100, check=False, env=os.environ | {"OMP_WAIT_POLICY": "passive"} | binding)
    return result.returncode, result.stdout


def name_of(binding):
    return " ".join(f"{key}={value}" for key, value in binding.items())


def check_host(name, command, binding, ranks=1):
    """Check the lines of the first and the second thread of each rank, which may be in any order."""
    code, text = output([*command, HOST, LIBRARY], binding)
    lines = re.findall(r"^(first|second), (\w+): ([\d ]+)$", text, re.MULTILINE)
    tap.ok(code == 0 and len(lines) == 5 * ranks and text.count("threads: ") == ranks, f"{name}: the host ends", text)
    changed = [" ".join(line) for line in lines if line[2] != " ".join(map(str, HERE))]
    tap.ok(lines and not changed, f"{name}: both threads keep their processors", *changed)
    tap.ok("threads: 1\n" not in text, f"{name}: a call has a team of threads", text)


def check_python(binding):
    code, text = output([PYTHON, "-c", PYTHON_HOST], binding | {"PYTHONPATH": f"{BUILD}/adapters/python",
                                                                "GRAFT_LIBRARY": LIBRARY})
    if "ModuleNotFoundError" in text:
        tap.skip("Python", "this Python has no " + text.rpartition("'")[0].rpartition("'")[2])
        return
    tap.ok(code == 0 and text.startswith("kept\nkept\n") and "\n1 threads" not in text,
           f"Python, {name_of(binding)}: both threads keep their processors", code, text)


def check_fortran(binding):
    with tempfile.TemporaryDirectory(prefix="graft-affinity-") as folder:
        with open(f"{folder}/host.f90", "w", encoding="utf-8") as source:
            source.write(FORTRAN_HOST)
        command = ["gfortran", "-O0", f"{ROOT}/adapters/fortran/graft.f90", "host.f90", "-o", "host", "-ldl"]
        code, text = output(command, {}, folder)
        if tap.ok(code == 0, "Fortran: the host is compiled", text):
            code, text = output([f"{folder}/host", LIBRARY], binding)
            lines = text.splitlines()
            tap.ok(code == 0 and len(lines) == 2 and lines[0] == lines[1],
                   f"Fortran, {name_of(binding)}: the thread keeps its processors", code, text)


def main():
    if len(HERE) < 2:
        tap.skip("affinity", "this process may run on one processor, to which all is bound")
        tap.done()
        return
    check_host("nothing bound", [], {})
    for binding in BINDINGS:
        check_host(name_of(binding), [], binding)
    for launcher in sys.argv[5:]:
        free = ["--bind-to", "none"] if launcher.endswith("openmpi") else []
        check_host(f"4 ranks of {os.path.basename(launcher)}", [launcher, *free, "-n", "4"], CLOSE, 4)
    if PYTHON == "none":
        tap.skip("Python", "none has cffi")
    else:
        check_python(CLOSE)
    if shutil.which("gfortran") is None:
        tap.skip("Fortran", "gfortran is not installed")
    else:
        check_fortran(CLOSE)
    tap.done()


main()
