#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the library on another processor: emulate.py MESON SOURCE FOLDER BYTES PROGRAM... It builds the library and
the TAP programs for aarch64 in FOLDER, looks for the instructions of NEON and SVE in the library's loops, and runs
the programs with qemu-user. BYTES is the size of the emulated vector registers. A PROGRAM is a file of that build
and its arguments, separated by blanks; arguments with a slash are files of the build. More BYTES with more programs
may follow."""
import ast
import collections
import configparser
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
import tap

CROSS_FILE = os.path.join(HERE, "aarch64.ini")
PACKAGES = "gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user"
# The loops to be checked are in the library alone, so other libraries are not needed for aarch64.
OPTIONS = ["-Dwerror=true", "-Dgraphblas=disabled", "-Dcblas=disabled", "-Donednn=disabled", "-Dgraft-train=disabled"]
# Variables with flags for the compiler of this machine, which are not passed to the cross compiler.
FLAGS = ("CFLAGS", "CPPFLAGS", "LDFLAGS")

POINT = re.compile(r"(not )?ok \d+(?: - )?(.*)")
SKIPPED = re.compile(r"(.*)# SKIP (.*)")
PLAN = re.compile(r"1\.\.(\d+)$")
FUNCTION = re.compile(r"[0-9a-f]+ <.+>:")
INSTRUCTION = re.compile(r"\s+([0-9a-f]+):\t([\w.]+)\t?(?:([a-z])\d+(?:\.(\w+))?)?")  # z0.s is said as 'zs'
BRANCH = re.compile(r"\t(?:b|b\.\w+|cbn?z|tbn?z)\t(?:.*, )?([0-9a-f]+) <")
TILE_REGISTERS = 8  # number of registers in the widest of the loops


def tools():
    """The programs of the cross file as {name: command}."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(CROSS_FILE)
    return {name: ast.literal_eval(value) for name, value in parser["binaries"].items()}


def missing(binaries):
    wrapper = binaries["exe_wrapper"]
    programs = [binaries["c"], binaries["objdump"], wrapper[0]]
    header = os.path.join(wrapper[-1], "include", "stdio.h")
    return [name for name in programs if shutil.which(name) is None] + [header] * (not os.path.exists(header))


def build(meson, source, folder, programs):
    targets = sorted({os.path.splitext(word)[0] for program in programs for word in program.split() if "/" in word})
    # A build folder of an older checkout does not have new options, so it is removed.
    shutil.rmtree(folder, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if name not in FLAGS}
    for command in ([meson, "setup", "--cross-file", CROSS_FILE, *OPTIONS, folder, source],
                    [meson, "compile", "-C", folder, "--jobs", "2", "graft", *targets]):
        result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="replace", check=False)
        if result.returncode != 0:
            return tap.ok(False, "the library and its tests are built for aarch64", " ".join(command), result.stdout)
    return tap.ok(True, "the library and its tests are built for aarch64")


def listing_of(binaries, folder, name):
    return subprocess.run([binaries["objdump"], "-d", "--no-show-raw-insn",
                           os.path.join(folder, "plugin", f"libsimd_{name}.a")],
                          capture_output=True, text=True, check=True).stdout


def functions(listing):
    """Yield the instructions of each function as (address, mnemonic, lanes or letter of the first register, target
    of a branch or None)."""
    for part in FUNCTION.split(listing)[1:]:
        code = []
        for line in part.splitlines():
            match, branch = INSTRUCTION.match(line), BRANCH.search(line)
            if match:
                form = (match.group(4) or match.group(3)) if match.group(3) != "z" else "z" + (match.group(4) or "")
                code.append((int(match.group(1), 16), match.group(2), form,
                             int(branch.group(1), 16) if branch else None))
        yield code


def loops(code):
    """Yield for each backward branch how often each instruction occurs in the loop that it closes."""
    for end, _, _, target in code:
        if target is not None and target <= end:
            yield collections.Counter((name, form) for address, name, form, _ in code if target <= address <= end)


def check_loops(listing):
    """Check the loop over the widest tile: each vector register takes one instruction, and no register is split into
    scalars."""
    codes = list(functions(listing))
    found = [loop for code in codes for loop in loops(code)]
    for lanes, single in (("4s", "s"), ("2d", "d")):
        sums = [loop for loop in found if loop["fadd", lanes] >= TILE_REGISTERS and not loop["fadd", single]]
        tap.ok(sums, f"sums of v.{lanes} are NEON additions", f"{len(found)} loops")
        tap.ok([loop for loop in sums if loop["fmul", lanes] >= TILE_REGISTERS and not loop["fmul", single]],
               f"weights multiply v.{lanes}", f"{len(sums)} loops that add")
        tap.ok([loop for loop in found if loop["fcmge", lanes] + loop["fcmgt", lanes] >= TILE_REGISTERS and
                sum(loop[name, "16b"] for name in ("bit", "bif", "bsl")) >= TILE_REGISTERS and
                not loop["fcmp", single] + loop["fcmpe", single]],
               f"extremes of v.{lanes} are NEON comparisons and choices by bits", f"{len(found)} loops")
    fused = {name for code in codes for _, name, _, _ in code if re.fullmatch(r"fn?m(la|ls|add|sub)", name)}
    tap.ok(codes and not fused, "products are rounded before they are added, as on other processors", *sorted(fused))


def check_sve(listing, bits):
    """Check the same loop with the registers of SVE."""
    codes = list(functions(listing))
    found = [loop for code in codes for loop in loops(code)]
    for lanes, single in (("zs", "s"), ("zd", "d")):
        sums = [loop for loop in found if loop["fadd", lanes] >= TILE_REGISTERS and not loop["fadd", single]]
        tap.ok(sums, f"sums of {lanes[0]}.{single} are additions of SVE, {bits} bits", f"{len(found)} loops")
    fused = {name for code in codes for _, name, _, _ in code if re.fullmatch(r"fn?m(la|ls|ad|sb|add|sub)", name)}
    tap.ok(codes and not fused, f"no products of SVE, {bits} bits, are fused", *sorted(fused))


def hand_on(line, where):
    """Print a line of a program with a check number of this test. The result is the number of checks in the line, 0
    or 1."""
    point = POINT.match(line)
    if not point:
        if not PLAN.match(line):
            print(line if line.startswith("#") else "# " + line, flush=True)
        return 0
    skipped = SKIPPED.match(point.group(2))
    if skipped and not point.group(1):
        tap.skip(f"{where}: {skipped.group(1)}".rstrip(": "), skipped.group(2))
    else:
        tap.ok(not point.group(1), f"{where}: {point.group(2)}")
    return 1


def run(wrapper, folder, program, registers):
    """Run a program on an emulated processor that has SVE with registers of this many bytes; 16 bytes are also the
    size of NEON registers."""
    environment = dict(os.environ, GRAFT_LIBRARY=os.path.join(folder, "libgraft.so"), GRAFT_TEST_REGISTERS=registers,
                       GRAFT_TEST_FEWER="10", QEMU_CPU=f"max,sve-default-vector-length={registers}")
    where = f"aarch64, {8 * int(registers)} bits"
    words = [os.path.join(folder, word) if "/" in word else word for word in program.split()]
    count, plans = 0, []
    with subprocess.Popen([*wrapper, *words], env=environment, stdout=subprocess.PIPE, text=True,
                          errors="replace") as process:
        for line in process.stdout:
            count += hand_on(line.rstrip("\n"), where)
            plans += [int(plan.group(1)) for plan in [PLAN.match(line)] if plan]
    tap.ok(process.returncode == 0 and count > 0 and plans == [count],
           f"{where}: {os.path.basename(words[0])} came to its end, with {count} checks",
           f"exit status {process.returncode}, plans {plans}")


def main():
    meson, source, folder, *programs = sys.argv[1:]
    binaries = tools()
    lacking = missing(binaries)
    if lacking:
        tap.skip("emulation of aarch64", f"there is no {', '.join(lacking)}: install {PACKAGES}")
    elif build(meson, source, folder, programs):
        check_loops(listing_of(binaries, folder, "generic"))
        check_sve(listing_of(binaries, folder, "sve256"), 256)
        check_sve(listing_of(binaries, folder, "sve512"), 512)
        registers = None
        for argument in programs:
            if argument.isdigit():
                registers = argument
            else:
                run(binaries["exe_wrapper"], folder, argument, registers)
    tap.done()


if __name__ == "__main__":
    main()
