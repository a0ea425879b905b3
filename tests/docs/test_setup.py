# SPDX-License-Identifier: Apache-2.0
"""Checks the first command of a new user: test_setup.py SOURCE_ROOT. run.sh must say which tools are missing, and
must look for libraries again after packages were installed. The oldest meson that examples/setup.sh accepts must be
able to configure the build."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import tap

ROOT = pathlib.Path(sys.argv[1])
NEEDED = ["bash", "awk", "grep", "dirname", "sort", "env", "mktemp", "cat", "rm"]
TOOLS = ["cc", "meson", "ninja", "pkg-config", "python3"]
DEBIAN_MESON = pathlib.Path("/usr/bin/meson")


def machine(folder, tools, fakes):
    """Make a folder with the scripts, and a PATH with the programs that they need, these tools, and fake programs
    that each print one line."""
    for name in ["examples/setup.sh", "examples/packages.txt", "tests/run.sh"]:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    programs = folder / "programs"
    programs.mkdir()
    for name in NEEDED:
        (programs / name).symlink_to(shutil.which(name))
    for name, text in {**dict.fromkeys(tools, "1.0.1"), **fakes}.items():
        (programs / name).write_text(f"#!{shutil.which('bash')}\nprintf '%s\\n' '{text}'\n")
        (programs / name).chmod(0o755)
    return {"PATH": str(programs)}


def run(command, env, folder=ROOT):
    done = subprocess.run(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def check_missing(lacking, fakes, *expected):
    """Run run.sh --suite fast on a machine where `lacking` is missing. The output must contain the expected words,
    and must not contain words with '-' before them."""
    with tempfile.TemporaryDirectory() as folder:
        env = machine(pathlib.Path(folder), [tool for tool in TOOLS if tool != lacking], fakes)
        code, said = run(["bash", "tests/run.sh", "--suite", "fast"], env, folder)
    good = all((word[1:] not in said) if word[0] == "-" else (word in said) for word in expected)
    tap.ok(code != 0 and good, f"without {lacking}{' on Debian' if fakes else ''}, run.sh says what to install", said)


def check_new_packages():
    """Meson remembers what it did not find. A build that is older than the last change of packages must therefore be
    configured again."""
    name = "libraries are looked for again only after packages have changed"
    if not pathlib.Path("/var/lib/dpkg/status").exists():
        tap.skip(name, "this is not Debian")
        return
    calls = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        env = machine(folder, TOOLS, {})
        (folder / "programs/meson").write_text(f"#!{shutil.which('bash')}\necho 1.0.1; echo \"$@\" >>{folder}/calls\n")
        for name_of in ["build/build.ninja", "meson_options.txt"]:
            (folder / name_of).parent.mkdir(exist_ok=True)
            (folder / name_of).touch()
        for age in [1e9, 0]:
            os.utime(folder / "build/build.ninja", (time.time() - age,) * 2)
            os.utime(folder / "meson_options.txt", (time.time() - 2e9,) * 2)
            (folder / "calls").write_text("")
            run(["bash", "tests/run.sh", "--suite", "fast"], env, folder)
            calls.append("configure --clearcache" in (folder / "calls").read_text())
    tap.ok(calls == [True, False], name, calls)


def check_oldest_meson():
    name = "the oldest meson configures the build"
    version = run([str(DEBIAN_MESON), "--version"], None)[1].strip() if DEBIAN_MESON.exists() else "none"
    if not version.startswith("1.0."):
        tap.skip(name, f"{DEBIAN_MESON} is {version}, not 1.0")
        return
    with tempfile.TemporaryDirectory() as folder:
        code, said = run([str(DEBIAN_MESON), "setup", folder, str(ROOT)], None)
    tap.ok(code == 0, name, said)


check_missing("meson", {"apt-get": "", "dpkg-query": "installed gcc", "id": "1000"}, "apt-get install", " meson",
              "- gcc", "-libgraphblas")
check_missing("meson", {}, "not a Debian system", "meson", "-pkg-config")
check_new_packages()
check_oldest_meson()
tap.done()
