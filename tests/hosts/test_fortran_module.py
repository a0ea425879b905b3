# SPDX-License-Identifier: Apache-2.0
"""Checks the module for hosts in Fortran: test_fortran_module.py ROOT COMPILER. It must be identical to what
generate.py makes from the headers, have their structs and constants, and compile by all language standards."""
import difflib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

ROOT, COMPILER = sys.argv[1], sys.argv[2:]
FOLDER = f"{ROOT}/adapters/fortran"
MODULE = f"{FOLDER}/graft.f90"
STRICT = ["-Wall", "-Wno-c-binding-type", "-Werror"]
WAYS = {"Fortran 2008": ["-std=f2008"], "Fortran 2018": ["-std=f2018"],
        "integers of 64 bits": ["-std=f2018", "-fdefault-integer-8"]}


def run(*command, folder):
    result = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=100, check=False)
    return result.returncode, result.stdout


def test_generated(text):
    if importlib.util.find_spec("cffi") is None:
        tap.skip("the module is what generate.py writes", "cffi is not installed")
        return
    code, new = run(sys.executable, f"{FOLDER}/generate.py", f"{ROOT}/abi", *COMPILER, folder=FOLDER)
    changes = list(difflib.unified_diff(text.splitlines(), new.splitlines(), "graft.f90", "generated", lineterm=""))
    tap.ok(code == 0 and new == text, "the module is what generate.py writes; adapters/fortran/README.md says how",
           *changes[:40])


def joined(text):
    return re.sub(r" &\n *", " ", text)


def names_of(text):
    """The names in the module as (constants, slots, {struct: fields})."""
    head = joined(text).split("abstract interface")[0]
    parameters = [one for line in re.findall(r"^   integer, parameter :: (.*)$", head, re.MULTILINE)
                  for one in re.findall(r"(\w+) = -?\d+", line)]
    types = {}
    for prefix, name, body in re.findall(r"type, bind\(c\) :: (c|graft)_(\w+)\n(.*?)   end type", head, re.DOTALL):
        fields = [one for line in re.findall(r" :: (.*)", body) for one in re.findall(r"(\w+)(?:\(\d+\))? =", line)]
        types[f"{prefix}_{name}"] = fields
    constants = [name for name in parameters if name.startswith("GRAFT_")]
    return constants, [name for name in parameters if name not in constants], types


def program_in_fortran(constants, slots, types):
    lines = ["program print_layout", "   use graft_abi", "   implicit none"]
    lines += [f"   type({name}), target :: {name}_" for name in types]
    lines += [f"   print '(a,1x,i0)', '{name}', {name}" for name in constants + slots]
    for name, fields in types.items():
        struct = "graft_" + name.split("_", 1)[1]
        lines += [f"   print '(a,1x,i0)', '{struct}', c_sizeof({name}_)",
                  f"   print '(a,1x,i0)', '{struct}.size', {name}_%size * c_sizeof(1_c_int8_t)"]
        lines += [f"   print '(a,1x,i0)', '{struct}.{field}', transfer(c_loc({name}_%{field}), 0_c_intptr_t) - &\n"
                  f"      transfer(c_loc({name}_), 0_c_intptr_t)" for field in fields]
    return "\n".join(lines + ["end program", ""])


def program_in_c(constants, slots, types):
    headers = "".join(open(os.path.join(path, name), encoding="utf-8").read()
                      for path, _, names in os.walk(f"{ROOT}/abi") for name in names if name.endswith(".h"))
    structs = re.findall(r"typedef struct graft_(\w+) \{", headers)
    rows = [f'"{name}", (long){name}' for name in constants]
    for name in slots:
        struct = max((one for one in structs if name.startswith(one + "_")), key=len)
        rows.append(f'"{name}", (long)offsetof(graft_{struct}, {name[len(struct) + 1:]}) / 8 + 1')
    for name, fields in types.items():
        struct = "graft_" + name.split("_", 1)[1]
        rows += [f'"{struct}", (long)sizeof({struct})', f'"{struct}.size", (long)sizeof({struct})']
        rows += [f'"{struct}.{field}", (long)offsetof({struct}, {field})' for field in fields]
    return ("#include <graft.h>\n#include <draft/graft_stream.h>\n#include <stdio.h>\nint main(void)\n{\n" +
            "".join(f'    printf("%s %ld\\n", {row});\n' for row in rows) + "    return 0;\n}\n")


def test_layout(text, folder):
    names = names_of(text)
    with open(f"{folder}/layout.f90", "w", encoding="utf-8") as file:
        file.write(program_in_fortran(*names))
    with open(f"{folder}/layout.c", "w", encoding="utf-8") as file:
        file.write(program_in_c(*names))
    made = [run("gfortran", "-w", MODULE, "layout.f90", "-o", "in_fortran", "-ldl", folder=folder),
            run(*COMPILER, "-I", f"{ROOT}/abi", "layout.c", "-o", "in_c", folder=folder)]
    if not tap.ok(all(code == 0 for code, _ in made), "programs that print the layout are compiled", *made):
        return
    fortran, c = (run(f"{folder}/{name}", folder=folder)[1].splitlines() for name in ("in_fortran", "in_c"))
    differ = sorted(set(fortran) ^ set(c))
    tap.ok(len(c) > 300 and fortran == c, "sizes, offsets, slots and constants are those of C", len(c), *differ)


def test_standards(folder):
    mpifort = next((name for name in ("mpifort.openmpi", "mpifort.mpich") if shutil.which(name)), None)
    for name, flags in WAYS.items():
        code, out = run("gfortran", *STRICT, *flags, "-c", MODULE, folder=folder)
        tap.ok(code == 0, f"the module is compiled without a warning: {name}", out)
        if mpifort is None:
            tap.skip(f"with mpi_f08: {name}", "no MPI is installed")
            continue
        code, out = run(mpifort, *STRICT, *flags[1:], "-c", f"{FOLDER}/graft_f08.f90", folder=folder)
        tap.ok(code == 0, f"and that for mpi_f08: {name}", out)


with open(MODULE, encoding="utf-8") as source, tempfile.TemporaryDirectory(prefix="graft-module-") as scratch:
    module = source.read()
    test_generated(module)
    if shutil.which("gfortran"):
        test_layout(module, scratch)
        test_standards(scratch)
    else:
        tap.skip("structs, constants and standards", "gfortran is not installed")
tap.done()
