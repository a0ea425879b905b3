# SPDX-License-Identifier: Apache-2.0
"""Compiles sources with musl instead of glibc: check_musl.py ROOT. musl-gcc compiles each header of abi/ alone, each
file of plugin/, and those files of adapters/ and examples/ that need no other library, with warnings as errors.
Nothing is linked, because the OpenMP library of gcc is built for glibc."""
import concurrent.futures
import glob
import os
import re
import sys

import compilers
import tap

ROOT = sys.argv[1]
FLAGS = ["-fsyntax-only", "-fopenmp", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-psabi",
         *(f"-I{ROOT}/{folder}" for folder in ("abi", "plugin", "adapters", "examples"))]
# Macros that Meson defines.
MADE = ["-DISA=generic", "-DWIDE_BYTES=16", '-DGRAFT_RELEASE=""', '-DGR_PROGRAMS=""', '-DGRB_COMPUTE="compute"']
OTHERS = "jansson", "argp", "mpi", "petsc", "cblas", "dnnl", "metis", "GraphBLAS"


def read(paths, *flags):
    return compilers.run(["musl-gcc", *FLAGS, *flags, *paths])


def faults(paths, *flags):
    """Compile files, several at once. The result is what the compiler printed."""
    parts = [paths[start::8] for start in range(8)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda part: read(part, *flags), [part for part in parts if part])
        return [said[-2000:] for good, said in results if not good]


def sources(folder):
    return sorted(glob.glob(f"{ROOT}/{folder}/**/*.c", recursive=True))


def needs_another(path):
    """Whether a file includes a header of another library, directly or through a header of its folder."""
    seen, names = set(), [path]
    while names:
        name = names.pop()
        if name in seen or not os.path.exists(name):
            continue
        seen.add(name)
        with open(name, encoding="utf-8") as file:
            for header in re.findall(r'^#include ["<]([^">]+)', file.read(), re.MULTILINE):
                if header.startswith(OTHERS) or header == "graft_mpi.h":
                    return True
                names += [os.path.join(folder, header) for folder in (os.path.dirname(name), f"{ROOT}/adapters")]
    return False


def main():
    headers = sorted(glob.glob(f"{ROOT}/abi/*.h") + glob.glob(f"{ROOT}/abi/draft/*.h"))
    plugin = sources("plugin")
    others = [path for path in sources("examples") + sources("adapters") if not needs_another(path)]
    for what, paths, flags in (("each header alone", headers, ["-xc"]),
                               ("each file of the library", plugin, MADE),
                               ("files of adapters and examples", others, MADE)):
        said = faults(paths, *flags)
        tap.ok(len(paths) > 10 and not said, f"{what}: musl-gcc takes {len(paths)} files", *said)
    good, said = compilers.run(["musl-gcc", *FLAGS, "-xc", "-"], "#include <string.h>\n"
                               "const char *text(void);\nconst char *text(void) { return strerrordesc_np(2); }\n")
    tap.ok(not good and "strerrordesc_np" in said, "what only glibc has is refused", said)


if compilers.is_there("musl-gcc"):
    main()
else:
    tap.skip("sources with musl", "musl-gcc is not installed (apt-get install musl-tools)")
tap.done()
