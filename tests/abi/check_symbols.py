#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the symbols that the built libraries export and import: check_symbols.py LIBGRAFT BUILD-FOLDER. Modules are
the files graft_KIND_NAME.so in the build folder. Functions that end, interrupt or redirect the host are forbidden.
Needs nm, objdump and readelf, which come with the compiler."""
import glob
import os
import platform
import re
import subprocess
import sys

import tap

# Functions that end the process, interrupt or redirect the host, print, or change what belongs to the whole process.
FORBIDDEN = """
    exit _exit _Exit quick_exit abort __assert_fail __assert __assert_perror_fail raise kill tgkill
    __stack_smash_handler
    signal sigaction sigprocmask pthread_sigmask sigaltstack sigset bsd_signal setjmp _setjmp __sigsetjmp longjmp
    _longjmp
    siglongjmp __longjmp_chk alarm setitimer timer_create
    system popen fork vfork clone execv execve execvp execl execlp posix_spawn posix_spawnp pthread_create
    srand rand random srandom drand48 srand48 setlocale uselocale textdomain
    printf vprintf fprintf vfprintf dprintf vdprintf puts putchar putc fputc fputs perror psignal error err errx
    warn warnx
    __printf_chk __vprintf_chk __fprintf_chk __vfprintf_chk __dprintf_chk stdout stderr stdin fwrite write syslog
    getenv putenv setenv unsetenv clearenv chdir fchdir chroot umask setrlimit setpriority nice
    sched_setaffinity pthread_setaffinity_np sched_setscheduler setuid setgid prctl
    fesetround fesetenv feupdateenv feenableexcept fedisableexcept
    atexit __cxa_atexit __cxa_thread_atexit_impl on_exit __register_atfork pthread_atfork
    strtok gets tmpnam dlmopen GOMP_error omp_pause_resource_all kmp_set_defaults
""".split()
FORBIDDEN_PATTERN = re.compile(r"omp_(set|init|destroy)_(?!lock\b)\w+|kmp_set_\w+|mallopt|__malloc_hook|GrB_finalize"
                               r"|MPI_(Init|Finalize)\w*")
# Memory is allocated by the host. aligned_alloc and free serve hosts without an allocator.
FORBIDDEN_IN_CORE = re.compile(r"malloc|calloc|realloc|reallocarray|posix_memalign|memalign|strn?dup|v?asprintf|getline"
                               r"|mmap|(GrB|GxB|LAGraph|LAGr|cblas|MPI|PMPI|METIS|ParMETIS|openblas)_\w*|[sdcz]gemm_")
# Variables of the library that may be written after it is loaded. gr_team_owner holds the process that started OpenMP
# threads, because a child by fork() does not have them and OpenMP cannot be asked. gr_handles lists the live handles,
# so that a destroyed handle is recognised without reading its memory. gr_pool has, for each thread, the keys of its
# last team and of the host's floating-point mode, and a lock for threads that start a team, because OpenMP cannot be
# asked for these. gr_tables has the tables of closed contexts, for hosts that close one twice. gr_processor has what
# the processor has reported about itself, which is constant.
KEPT = {"gr_team_owner", "gr_handles", "gr_pool", "gr_tables", "gr_processor"}
# More exceptions. graft-metis runs as a process of its own, whose start calls no handler of fork() or of signals of the
# host, and which is killed if it does not end in time; test_metis checks that nothing of the host changes. Some
# threads are started for a short time to find out how many can be started, because OpenMP ends the process if it cannot
# start one. OpenMP may bind the host's thread to processors, which is undone; test_affinity checks that.
ALLOWED_IN_CORE = {"posix_spawn", "kill", "pthread_create", "sched_setaffinity"}
# In a parallel region this sets the number of threads of that region only; test_manners checks the host's number.
ALLOWED = dict.fromkeys(("graft_dense_cblas.so", "graft_dense_onednn.so"), {"omp_set_num_threads"})
# These symbols are used only for a host that asks for them by graft_communicator.start.
ALLOWED |= dict.fromkeys(("graft_transport_openmpi.so", "graft_transport_mpich.so"),
                         {"MPI_Init_thread", "MPI_Initialized", "MPI_Finalize", "MPI_Finalized"})
CORE_NEEDS = re.compile(r"lib(c|m|dl|pthread|gomp|omp|iomp5)\.so(\.\d+)*|ld-linux[\w.-]*")

X87 = re.compile(r"\tf(?:i?ld|i?st|add|sub|mul|div|com|ucom|sqrt|abs|chs|rndint)\w* ")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def names(path, *options):
    """The symbols of the dynamic table, without versions."""
    lines = output("nm", "-D", *options, path).splitlines()
    return [line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "w"]


def section_indices(path, wanted):
    found = re.findall(r"^\s*\[\s*(\d+)\]\s+(\S+)", output("readelf", "-SW", path), re.MULTILINE)
    return {number for number, name in found if name in wanted}


def mutable_objects(path):
    """Variables of the library that can be written after it is loaded. Variables of the compiler are left out: those
    of its start files, and the locks of its OpenMP library."""
    writable = section_indices(path, {".data", ".bss", ".tdata", ".tbss"})
    for line in output("readelf", "-sW", path).splitlines():
        parts = line.split()
        if len(parts) == 8 and parts[3] in ("OBJECT", "TLS") and parts[6] in writable:
            known = {"completed", "__dso_handle", "__TMC_END__"} | KEPT
            if parts[7].split(".")[0] not in known and not parts[7].startswith(".gomp_critical_"):
                yield parts[7]


def check_imports(name, path, core):
    imports = set(names(path, "--undefined-only")) - ALLOWED.get(name, ALLOWED_IN_CORE if core else set())
    bad = [symbol for symbol in imports if symbol in FORBIDDEN or FORBIDDEN_PATTERN.fullmatch(symbol) or
           (core and FORBIDDEN_IN_CORE.fullmatch(symbol))]
    tap.ok(imports and not bad, f"{name} wants no function that ends, prints, or changes the process", *sorted(bad))


def check_dynamic(name, path, core):
    dynamic = output("readelf", "-dW", path)
    flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\)\s+(.*)", dynamic)).replace("Flags:", "").split()
    tap.ok({"NOW", "NODELETE"} <= set(flags), f"{name} is bound at load and never unloaded", *flags)
    tap.ok("STATIC_TLS" not in flags and "TEXTREL" not in dynamic and "SYMBOLIC" not in flags,
           f"{name} has no static TLS and no text relocations", *flags)
    segments = output("readelf", "-lW", path)
    stack = re.search(r"GNU_STACK.*", segments)
    tap.ok("GNU_RELRO" in segments and " TLS " not in segments and stack and "E" not in stack.group().split()[-2],
           f"{name} is read-only after relocation, has no thread-local storage and no executable stack", segments)
    arrays = dict(re.findall(r"\((INIT|FINI)_ARRAYSZ\)\s+(\d+)", dynamic))
    tap.ok(all(int(size) <= 8 for size in arrays.values()) and "PREINIT_ARRAY" not in dynamic,
           f"{name} runs no code of its own when it is loaded or unloaded", arrays)
    objects = list(mutable_objects(path))
    tap.ok(not objects, f"{name} has no variable that outlives a context", *objects)
    if core:
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        foreign = [library for library in needed if not CORE_NEEDS.fullmatch(library)]
        tap.ok(needed and not foreign, f"{name} stands on the C library and OpenMP alone", *foreign)
        if any(library.startswith("libomp.") for library in needed):
            tap.skip(f"{name} brings no search path of its own", "clang's OpenMP lies where only such a path leads")
        else:
            tap.ok("RPATH" not in dynamic and "RUNPATH" not in dynamic, f"{name} brings no search path of its own",
                   dynamic)
        tap.ok(re.search(r"\(SONAME\).*\[libgraft\.so\.\d+\]", dynamic), f"{name} has a soname with its major version")


def unresolved(path):
    """Symbols that this library imports and no library exports."""
    result = subprocess.run(["ldd", "-r", path], capture_output=True, text=True, check=False)
    return [line for line in (result.stdout + result.stderr).splitlines() if "undefined symbol" in line]


def uses_x87(path):
    """Whether code computes with the registers of the x87 unit, because a call masks only the traps of the SSE unit
    (plugin/base/fp.h)."""
    return X87.search(output("objdump", "-d", path))


def check_library(path, export, core):
    name = os.path.basename(path)
    exports = names(path, "--defined-only")
    tap.ok(exports == [export], f"{name} exports {export} and nothing else", *exports)
    missing = unresolved(path)
    tap.ok(not missing, f"{name} names every library that it needs", *missing)
    check_imports(name, path, core)
    check_dynamic(name, path, core)
    if platform.machine() == "x86_64":
        found = uses_x87(path)
        tap.ok(not found, f"{name} computes nothing with x87", found)


def main():
    library, build = sys.argv[1:3]
    check_library(library, "graft_open", core=True)
    modules = sorted(glob.glob(os.path.join(build, "graft_*_*.so")))
    for module in modules:
        check_library(module, "graft_module", core=False)
    if not modules:
        tap.skip("modules", "none was built")
    if platform.machine() == "x86_64":
        libm = re.search(r"=> (\S*libm\.so\S*)", output("ldd", library)).group(1)
        tap.ok(uses_x87(libm), "x87 in the functions of long double is noticed", libm)
    tap.ok(unresolved(os.path.join(build, "tests", "abi", "graft_kernel_unresolved.so")), "a missing symbol is noticed")
    tap.done()


if __name__ == "__main__":
    main()
