#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the installed tree after it was moved to another folder: test_installed.py ROOT BUILD [LIBDIR]. It installs
BUILD or, with LIBDIR, a new build that is configured for this library folder. Prints TAP."""
import glob
import json
import os
import re
import shutil
import sys
import tempfile

import sources
import tap
from installed import fine, install, installed_and_moved, kept_log, meson_of, option, run

OF_SOURCE = re.compile(r"(?<![\w/.-])build/|-I (?:\.\./)*(?:abi|adapters)\b")
TRIED_ELSEWHERE = ("examples/heat/", "examples/solver_dummies/")
STRICT = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
MPI = dict(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
           OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_hwloc_base_binding_policy="none",
           GRAFT_THREADS="1")


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(path, name), folder)
                  for path, _, names in os.walk(folder) for name in names)


def install_and_move(build):
    """Install and yield the moved tree."""
    with kept_log(build):
        tree = installed_and_moved(build, base)
        if tree is not None:
            fine("it installs again", install(build, f"{base}/second"))
            fine("it uninstalls", run(*meson, "--internal", "uninstall", cwd=build))
            left = files_of(f"{base}/second")
            tap.ok(not left, "uninstalling leaves no file", *left)
    return tree


def configure(libdir):
    """Configure a build without optimisation, for a prefix that does not exist when the tree is used."""
    build = f"{base}/build"
    options = [f"--prefix={base}/prefix", f"--libdir={libdir}", "-Dtests=false", "-Doptimization=0"]
    if not (fine(f"it is configured for {libdir}", run(*meson, "setup", *options, build, root)) and
            fine("it builds", run(*meson, "compile", "-C", build, "-j", "2"))):
        return None
    return build


def test_files(tree, build):
    lib = os.path.join(tree, option(build, "libdir"))
    wanted = [f"include/graft/{os.path.relpath(path, root + '/abi')}"
              for path in glob.glob(f"{root}/abi/*.h") + glob.glob(f"{root}/abi/draft/*.h")]
    programs = [name for name in ("graft-train", "graft-info", "graft-check", "graft-metis")
                if os.path.exists(f"{build}/{name}")]
    wanted += [f"include/graft/{name}" for name in
               ("graft.f90", "graft.hpp", "graft_mpi.h", "graft_mpi.hpp", "graft_petsc.h")]
    wanted += ["share/man/man7/graft.7", "share/doc/graft/LICENSE", "share/doc/graft/abi/README.md",
               "share/doc/graft/examples/smallest.c",
               "share/doc/graft/examples/module/kernel.c", "share/doc/graft/examples/graft-train/main.c",
               "share/doc/graft/examples/graft-train/README.md"]
    wanted += [f"bin/{name}" for name in programs] + [f"share/man/man1/{name}.1" for name in programs]
    in_lib = ["libgraft.so", "libgraft.so.1", "pkgconfig/graft.pc", "cmake/graft/graft-config.cmake",
              "cmake/graft/graft-config-version.cmake"]
    in_lib += [f"graft/{os.path.basename(path)}" for path in glob.glob(f"{build}/graft_*_*.so")]
    missing = [name for name in wanted if not os.path.exists(os.path.join(tree, name))]
    missing += [name for name in in_lib if not os.path.exists(os.path.join(lib, name))]
    tap.ok(not missing and len(programs) > 1, "headers, library, modules, programs, pages and examples are there",
           *missing, programs)
    file = os.path.basename(os.path.realpath(f"{lib}/libgraft.so.1"))
    soname = re.search(r"SONAME.*\[(.*)\]", run("readelf", "-d", f"{lib}/{file}").stdout)
    tap.ok(file == f"libgraft.so.{RELEASE}" and soname and soname[1] == "libgraft.so.1",
           "the file of the library has the release in its name, and the contract in its soname", file, soname)
    return lib, programs


def test_contents(tree, build, lib):
    """Check that no file contains the path where it was made or first installed."""
    places = {os.path.realpath(root), os.path.realpath(build), base, option(build, "prefix")} - {"/usr", "/"}
    found = []
    for name in files_of(tree):
        with open(os.path.join(tree, name), "rb") as file:
            content = file.read()
        found += [f"{name}: {place}" for place in places
                  if re.search(re.escape(place.encode()) + rb"(?![\w-])", content)]
    tap.ok(not found, "no file has the path of the source, the build or the prefix", *found)
    symbols = run("nm", "-D", "--defined-only", f"{lib}/libgraft.so.1").stdout.split("\n")
    names = [line.split()[-1].split("@")[0] for line in symbols if line]
    tap.ok(names == ["graft_open"], "the library exports graft_open alone", *names)


def check_host(name, tree, lib, command):
    result = run(*command)
    module = os.path.exists(f"{lib}/graft/graft_kernel_graphblas.so")
    tap.ok("reference ran" in result.stdout and ("graphblas ran" in result.stdout or not module), name,
           result.stdout, result.stderr)


def test_pkg_config(tree, lib):
    if shutil.which("pkg-config") is None:
        tap.skip("a host by pkg-config", "pkg-config is not installed")
        return

    def ask(*words):
        return run("pkg-config", *words, "graft", PKG_CONFIG_PATH=f"{lib}/pkgconfig").stdout.split()

    flags, libs, library = ask("--cflags"), ask("--libs"), ask("--variable=library")
    source = f"{tree}/share/doc/graft/examples/smallest.c"
    path = f"-Wl,-rpath,{''.join(ask('--variable=libdir'))}"
    if not fine("a host is built with pkg-config", run("cc", *flags, source, path, "-o", f"{base}/host", *libs)):
        return
    check_host("it finds the library by the path that pkg-config has", tree, lib, [f"{base}/host", *library])
    check_host("and by its own run path", tree, lib, [f"{base}/host"])
    tap.ok(all(base + "/moved" in os.path.normpath(word) for word in library) and
           os.path.samefile(library[0], f"{lib}/libgraft.so.1"), "the path is in the moved tree", library)


def test_cmake(tree, lib):
    if shutil.which("cmake") is None:
        tap.skip("a host by CMake", "cmake is not installed")
        return
    os.mkdir(f"{base}/cmake")
    with open(f"{base}/cmake/CMakeLists.txt", "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.18)\nproject(host C)\nfind_package(graft "
                   f"{RELEASE} REQUIRED)\nadd_executable(host {tree}/share/doc/graft/examples/smallest.c)\n"
                   "target_link_libraries(host PRIVATE graft::graft)\n"
                   "file(WRITE ${CMAKE_BINARY_DIR}/library.txt ${graft_LIBRARY})\n")
    where = f"-Dgraft_DIR={lib}/cmake/graft" if lib.endswith("lib64") else f"-DCMAKE_PREFIX_PATH={tree}"
    made = run("cmake", "-G", "Ninja", "-S", f"{base}/cmake", "-B", f"{base}/cmake/build", where)
    if made.returncode == 0:
        made = run("cmake", "--build", f"{base}/cmake/build")
    if fine("a host is built with CMake", made):
        with open(f"{base}/cmake/build/library.txt", encoding="utf-8") as file:
            check_host("and runs", tree, lib, [f"{base}/cmake/build/host", file.read()])
    with open(f"{base}/cmake/CMakeLists.txt", "a", encoding="utf-8") as file:
        file.write("find_package(graft 99 REQUIRED)\n")
    result = run("cmake", "-G", "Ninja", "-S", f"{base}/cmake", "-B", f"{base}/cmake/late",
                 f"-Dgraft_DIR={lib}/cmake/graft")
    tap.ok(result.returncode != 0 and "99" in result.stderr, "a later version is refused", result.stderr)


def test_release(tree, lib, programs):
    """Check that every place where a user asks for the version reports the one in meson.build."""
    said = {name: run(f"{tree}/bin/{name}", "--version").stdout for name in programs}
    said["convert.py"] = run("python3", f"{tree}/share/doc/graft/examples/convert/convert.py", "--version").stdout
    wrong = [f"{name}: {text}" for name, text in said.items()
             if not re.match(re.escape(f"{name}: Graft {RELEASE}") + r"(\n|, contract 1, .*libgraft\.so\.1\n)$", text)]
    tap.ok(not wrong, f"--version of programs has release {RELEASE}", *wrong)
    with open(f"{lib}/pkgconfig/graft.pc", encoding="utf-8") as file:
        has_package = f"\nVersion: {RELEASE}\n" in file.read()
    with open(f"{tree}/share/doc/graft/CHANGELOG.md", encoding="utf-8") as file:
        entry = re.search(r"^## (\d+\.\d+)", file.read(), re.MULTILINE)[1]
    with open(f"{tree}/share/doc/graft/abi/README.md", encoding="utf-8") as file:
        has_manual = f"The *release* is {RELEASE}:" in file.read()
    tap.ok(has_package and has_manual and RELEASE.startswith(entry + "."), "graft.pc, manual and CHANGELOG have it too",
           has_package, has_manual, entry)


def source_groups():
    """The hosts to compile as {name: (compiler, its flags, packages of pkg-config, files)}, with paths relative to
    the documents. hosts/test_dummies and hosts/test_heat_hosts build the files in TRIED_ELSEWHERE, also from an
    installed tree."""
    return {
        "examples in C": ("cc", [], "graft",
                          ["examples/[!g]*.c", "examples/link-prediction/*.c", "examples/module/*.c"]),
        "graft-info": ("cc", ["-DWITH_JANSSON"], "jansson graft", ["examples/graft-info.c"]),
        "graft-info without jansson": ("cc", [], "graft", ["examples/graft-info.c"]),
        "graft-train": ("cc", [], "jansson graft", ["examples/graft-train/*.c"]),
        "examples in C++": ("c++", ["-std=c++17"], "graft", ["examples/*.cc"]),
        "the host in C++ with MPI": ("mpicxx", ["-std=c++17", "-DOMPI_SKIP_MPICXX"], "graft", ["adapters/cxx/*.cpp"]),
        "the host with PETSc": ("mpicc", ["-DOMPI_SKIP_MPICXX"], "petsc graft", ["adapters/petsc/*.c"]),
    }


def test_sources(tree, lib):
    """Compile every source file among the documents that can be compiled, with the flags of pkg-config alone."""
    documents = f"{tree}/share/doc/graft"
    if shutil.which("pkg-config") is None:
        tap.skip("the examples compile", "pkg-config is not installed")
        return
    left = {name for name in files_of(documents) if name.endswith((".c", ".cc", ".cpp", ".f90"))
            and not name.startswith(TRIED_ELSEWHERE)}
    for name, (compiler, options, packages, patterns) in source_groups().items():
        files = [path for pattern in patterns for path in sorted(glob.glob(pattern, root_dir=documents))]
        left -= set(files)
        flags = run("pkg-config", "--cflags", *packages.split(), PKG_CONFIG_PATH=f"{lib}/pkgconfig")
        if shutil.which(compiler) is None or flags.returncode != 0:
            tap.skip(f"{name} compiles", f"{compiler} or {packages.split()[0]} is not installed")
            continue
        system = [flag if tree in os.path.normpath(flag) else flag.replace("-I", "-isystem", 1)
                  for flag in flags.stdout.split()]
        result = run(compiler, *STRICT, *options, *system, *files, cwd=documents)
        tap.ok(files and result.returncode == 0, f"{name}: {len(files)} files compile", *files, result.stderr)
    tap.ok(not left, "no example is left out", *left)


GRAPHBLAS_HOST = """
#include <graft_grb.h>
#include <graft_grb_train.h>
int main(void)
{
    GrB_Matrix a = NULL, h = NULL;

    GrB_init(GrB_NONBLOCKING);
    GrB_Matrix_new(&a, GrB_FP32, 300, 300);
    GrB_Matrix_new(&h, GrB_FP32, 300, 8);
    for (GrB_Index i = 0; i < 300; i++) GrB_Matrix_setElement_FP32(a, 1, i, i);
    GrB_Matrix_assign_FP32(h, NULL, NULL, 1, GrB_ALL, 300, GrB_ALL, 8, NULL);
    return GrB_mxm(h, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL);
}
"""


def test_graphblas(lib):
    """Check that the headers for GraphBLAS compile as their manual includes them, and that the drop-in works with
    the installed tree alone."""
    there = run("cc", "-E", "-include", "GraphBLAS.h", "-xc", "/dev/null").returncode == 0
    if shutil.which("pkg-config") is None or not there:
        tap.skip("graft_grb.h compiles", "pkg-config or GraphBLAS.h is not there")
        return
    flags = run("pkg-config", "--cflags", "graft", PKG_CONFIG_PATH=f"{lib}/pkgconfig").stdout.split()
    with open(f"{base}/grb.c", "w", encoding="utf-8") as file:
        file.write(GRAPHBLAS_HOST)
    for compiler in filter(shutil.which, ("cc", "gcc-11", "clang")):
        fine(f"graft_grb.h compiles with {compiler}, without optimisation too",
             run(compiler, "-O0", "-Wall", "-Wextra", "-Werror", *flags, "-c", f"{base}/grb.c", "-o", f"{base}/grb.o"))
    if fine("it is linked with GraphBLAS", run("cc", f"{base}/grb.o", "-lgraphblas", "-ldl", "-o", f"{base}/grb")):
        found = run(f"{base}/grb", LD_PRELOAD=f"{lib}/libgraft-grb.so", GRAFT_GRB="work=0,columns=0,verbose")
        tap.ok(found.returncode == 0 and "GrB_mxm taken" in found.stderr, "its product is taken by the drop-in",
               found.stderr)


def test_python(lib):
    """Check that the Python package of the tree finds the library of the tree."""
    if not os.path.exists(f"{lib}/graft/python/graft/_abi.py"):
        tap.skip("the Python package", "it was not built: there is no cffi")
        return
    text = "import graft; c = graft.Context(); print(graft.__file__, c.version, graft._library.find())"
    result = run("python3", "-c", text, PYTHONPATH=f"{lib}/graft/python")
    said = result.stdout.split()
    tap.ok(result.returncode == 0 and said[1] == RELEASE and said[0].startswith(lib) and
           os.path.samefile(said[2], f"{lib}/libgraft.so.1"), "the Python package finds its library", said,
           result.stderr)


def test_documents(tree):
    """Check that links lead to files of the tree, and that commands name no files of the source or of a build."""
    documents = f"{tree}/share/doc/graft"
    texts = {name: sources.read(documents, name) for name in files_of(documents) if name.endswith(".md")}
    broken = list(check_docs.broken_links(documents, texts))
    tap.ok(len(texts) > 10 and not broken, f"links of {len(texts)} documents lead somewhere", *broken)
    named = [f"{name}: {line}" for name in files_of(documents) if name != "CHANGELOG.md"
             for line in sources.read(documents, name).splitlines()
             if OF_SOURCE.search(line) and "the source" not in line]
    tap.ok(not named, "no command needs the source or a build", *named)


def test_programs(tree, lib, programs):
    result = run(f"{tree}/bin/graft-info")
    tap.ok(result.returncode == 0 and f"{base}/moved" in result.stdout and lib in os.path.normpath(result.stdout),
           "graft-info finds the library and modules of the moved tree", result.stdout, result.stderr)
    if "graft-check" in programs:
        result = run(f"{tree}/bin/graft-check", f"{tree}/share/doc/graft/LICENSE")
        said = result.stdout + result.stderr
        tap.ok("LICENSE" in said and "as the Graft library" not in said, "graft-check finds the library", said)
    if "graft-train" not in programs:
        tap.skip("graft-train trains", "it was not built")
        return
    check_docs.make_dataset(f"{tree}/share/doc/graft", f"{base}/data")
    has_kernel = os.path.exists(f"{lib}/graft/graft_kernel_graphblas.so")
    has_ranks = shutil.which("mpiexec") and glob.glob(f"{lib}/graft/graft_transport_*.so")
    command = [f"{tree}/bin/graft-train", f"{base}/data", "--json", f"{base}/report.json", "--set", "epochs=2",
               "strict=yes", "mxm.kernel=" + ("graphblas" if has_kernel else "simd")]
    if has_ranks and "graft-metis" in programs:
        command = ["mpiexec", "-n", "2", *command, "partition=metis"]
    else:
        tap.skip("on two ranks", "there is no mpiexec, no transport or no METIS")
    if not fine("graft-train trains, with a kernel by name", run(*command, **MPI)):
        return
    with open(f"{base}/report.json", encoding="utf-8") as file:
        report = json.load(file)
    tap.ok(report["kernel"] == ("graphblas" if has_kernel else "simd") and
           report.get("ranks", 1) == (2 if command[0] == "mpiexec" else 1), "with that kernel, on these ranks",
           report["kernel"], report.get("ranks"))


def plain(text):
    """The text of a manual page or of --help, without markup and line ends."""
    text = re.sub(r"^\.[A-Z]+ ?", "", text, flags=re.MULTILINE).replace("\\-", "-").replace('"', "")
    return re.sub(r"\s+", " ", text)


def options_of_help(text):
    """The options and their descriptions as pairs, found by the columns of the text."""
    found, column = [], 0
    for line in text.splitlines():
        match = re.match(r" +((?:-., )?--[\w-]+\S*(?: [A-Z]+)?|-., --\S+|KEY=VALUE) {2,}(\S.*)$", line)
        if match:
            found.append([match[1], match[2]])
            column = match.start(2)
        elif found and column and line[:column].strip() == "" and line.strip():
            found[-1][1] += " " + line.strip()
        else:
            column = 0
    return found


def test_pages(tree, programs):
    for name in programs:
        result = run(f"{tree}/bin/{name}", "--help")
        with open(f"{tree}/share/man/man1/{name}.1", encoding="utf-8") as file:
            page = file.read()
        section = re.search(r"^\.SH OPTIONS\n(.*?)^\.SH", page, re.MULTILINE | re.DOTALL)
        tags = re.findall(r"^\.TP\n(.*)\n", section[1], re.MULTILINE) if section else []
        items = [plain(tag).strip().replace("= ", "=") for tag in tags]
        helped = options_of_help(result.stdout)
        tap.ok(result.returncode == 0 and helped and items == [option for option, _ in helped],
               f"{name}.1 has the options of --help", items, helped)
        lacking = [text for _, text in helped if plain(text) not in plain(page)]
        tap.ok(not lacking, f"{name}.1 describes them in the same words", *lacking)
    if shutil.which("groff") is None:
        tap.skip("pages are well formed", "groff is not installed")
        return
    for page in sorted(glob.glob(f"{tree}/share/man/man?/*")):
        result = run("groff", "-man", "-ww", "-z", page)
        tap.ok(result.returncode == 0 and result.stderr == "", f"{os.path.basename(page)} is well formed",
               result.stderr)


root, made_in = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(root, "tests", "docs"))
import check_docs  # noqa: E402
meson = meson_of(made_in)
RELEASE = re.search(r"version: '([\d.]+)'", sources.read(root, "meson.build"))[1]
with tempfile.TemporaryDirectory(prefix="graft-installed-") as base:
    base = os.path.realpath(base)
    if len(sys.argv) > 3:
        made_in = configure(sys.argv[3])
    moved = install_and_move(made_in) if made_in else None
    if moved:
        libraries, installed = test_files(moved, made_in)
        test_contents(moved, made_in, libraries)
        test_pkg_config(moved, libraries)
        test_cmake(moved, libraries)
        test_release(moved, libraries, installed)
        test_python(libraries)
        test_programs(moved, libraries, installed)
    if moved and len(sys.argv) == 3:  # these tests do not depend on the library folder
        test_sources(moved, libraries)
        test_graphblas(libraries)
        test_documents(moved)
        test_pages(moved, installed)
tap.done()
