# SPDX-License-Identifier: Apache-2.0
"""Installs a build into a temporary folder and moves that folder. Tests get the programs in it and an environment
without a path to any other Graft."""
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess

import tap

TIMEOUT = 900


def run(*command, cwd=None, **variables):
    """Run a command without the environment variables that lead to another Graft."""
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("GRAFT_") and key not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=TIMEOUT, check=False, cwd=cwd, env=environment | {"LC_ALL": "C.UTF-8"} | variables)


def fine(name, result):
    return tap.ok(result.returncode == 0, name, f"exit status {result.returncode}", result.stdout, result.stderr)


def meson_of(build):
    """The path of the Meson that made this build, because another version may not be able to read it."""
    with open(f"{build}/build.ninja", encoding="utf-8") as file:
        return shlex.split(re.search(r"^ command = (.*) --internal regenerate ", file.read(), re.MULTILINE)[1])


def option(build, name):
    result = run(*meson_of(build), "introspect", "--buildoptions", build)
    return next(entry["value"] for entry in json.loads(result.stdout) if entry["name"] == name)


@contextlib.contextmanager
def kept_log(build):
    """Restore the log of the last installation afterwards, because it belongs to the user."""
    log = os.path.join(build, "meson-logs", "install-log.txt")
    kept = open(log, "rb").read() if os.path.exists(log) else None
    try:
        yield
    finally:
        if kept is not None:
            with open(log, "wb") as file:
                file.write(kept)
        elif os.path.exists(log):
            os.remove(log)


def paths(build, tree):
    """The environment variables by which a user finds the programs, the pkg-config file and the Python package of an
    installed tree."""
    lib = os.path.join(tree, option(build, "libdir"))
    return {"PATH": f"{tree}/bin:{os.environ['PATH']}", "PKG_CONFIG_PATH": f"{lib}/pkgconfig",
            "PYTHONPATH": f"{lib}/graft/python"}


def install(build, target):
    return run(*meson_of(build), "install", "-C", build, "--no-rebuild", "--destdir", target)


def installed_and_moved(build, folder):
    """Install the build and move it to folder/moved. The result is that path, or None if something failed."""
    if not fine("it installs", install(build, f"{folder}/first")):
        return None
    shutil.move(f"{folder}/first" + option(build, "prefix"), f"{folder}/moved")
    shutil.rmtree(f"{folder}/first")
    return f"{folder}/moved"
