# SPDX-License-Identifier: Apache-2.0
"""Builds wheels and source archives of graft-gnn by PEP 517: `pip wheel adapters/python`.

meson and ninja build the library from the whole source; the wheel has the library, the modules that could be built, and
the package. With `--config-settings build-dir=build` an existing build is packed instead of a new one."""
import base64
import glob
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EPOCH = (2020, 1, 1, 0, 0, 0)  # the time of all files, so that wheels of equal sources are equal


def _project():
    with open(os.path.join(HERE, "pyproject.toml"), "rb") as file:
        return tomllib.load(file)["project"]


def _version():
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
        return re.search(r"version: '([^']+)'", file.read())[1]


def _metadata():
    project = _project()
    lines = ["Metadata-Version: 2.3", f"Name: {project['name']}", f"Version: {_version()}",
             f"Summary: {project['description']}", f"License: {project['license']}",
             f"Requires-Python: {project['requires-python']}", "Description-Content-Type: text/markdown"]
    lines += [f"Requires-Dist: {one}" for one in project["dependencies"]]
    for extra, packages in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [f"Requires-Dist: {one}; extra == '{extra}'" for one in packages]
    with open(os.path.join(HERE, project["readme"]), encoding="utf-8") as file:
        return "\n".join(lines) + "\n\n" + file.read()


def _build(folder):
    """Compile the programs and libraries of a wheel into `folder`."""
    subprocess.run(["meson", "setup", folder, ROOT, "--buildtype=release", "-Dtests=false", "-Dgraft-train=disabled",
                    "-Dpython=enabled"], check=True)
    subprocess.run(["ninja", "-C", folder], check=True)


def _files(build):
    """The files of a wheel as {name in the wheel: path}: the package, the library, its modules, the partitioner, and
    the two files of the drop-in."""
    package = os.path.join(build, "adapters", "python", "graft")
    sources = glob.glob(os.path.join(HERE, "graft", "*.py")) + [os.path.join(HERE, "graft", "py.typed")]
    files = {"graft/" + os.path.basename(path): path for path in [*sources, os.path.join(package, "_abi.py")]}
    files["graft/lib/libgraft.so.1"] = os.path.realpath(os.path.join(build, "libgraft.so.1"))
    more = ("graft_*.so", "graft-metis", "libgraft-grb*.so")
    for path in (path for pattern in more for path in glob.glob(os.path.join(build, pattern))):
        files["graft/lib/" + os.path.basename(path)] = path
    return files


def _write_wheel(path, contents):
    """Write a wheel. `contents` is {name: (bytes, whether it is a program)}. The record of the contents is written
    last."""
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, is_program) in contents.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (0o755 if is_program else 0o644) << 16
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            record.append(f"{name},sha256={digest},{len(data)}")
            if name.endswith("/RECORD"):
                record[-1] = name + ",,"
                data = ("\n".join(record) + "\n").encode()
            archive.writestr(info, data)


def _read(path):
    with open(path, "rb") as file:
        return file.read(), os.access(path, os.X_OK) and not path.endswith(".py")


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build, scratch = (config_settings or {}).get("build-dir"), None
    if build is None:
        build = scratch = tempfile.mkdtemp(prefix="graft-wheel-")
    try:
        if scratch:
            _build(scratch)
        contents = {name: _read(path) for name, path in sorted(_files(build).items())}
    finally:
        if scratch:
            shutil.rmtree(scratch)
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    base = f"graft_gnn-{_version()}"
    wheel = f"Wheel-Version: 1.0\nGenerator: graft build_backend\nRoot-Is-Purelib: false\nTag: {tag}\n"
    contents[base + ".dist-info/METADATA"] = (_metadata().encode(), False)
    contents[base + ".dist-info/WHEEL"] = (wheel.encode(), False)
    contents[base + ".dist-info/licenses/LICENSE"] = _read(os.path.join(ROOT, "LICENSE"))
    contents[base + ".dist-info/RECORD"] = (b"", False)
    name = f"{base}-{tag}.whl"
    _write_wheel(os.path.join(wheel_directory, name), contents)
    return name


def _sources():
    """The paths of the whole source, relative to its root."""
    for path, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in (".git", "__pycache__") and not name.startswith("build")]
        yield from (os.path.relpath(os.path.join(path, name), ROOT) for name in names if not name.endswith(".whl"))


def build_sdist(sdist_directory, config_settings=None):
    """Pack the whole source, with a pyproject.toml at its top level that refers to this folder."""
    base = f"graft_gnn-{_version()}"
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        project = file.read().replace('backend-path = ["."]', 'backend-path = ["adapters/python"]').replace(
            'readme = "README.md"', 'readme = "adapters/python/README.md"')
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(_sources()):
            archive.add(os.path.join(ROOT, path), f"{base}/{path}", recursive=False)
        for name, text in (("pyproject.toml", project), ("PKG-INFO", _metadata())):
            info = tarfile.TarInfo(f"{base}/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return base + ".tar.gz"


if __name__ == "__main__":  # build_backend.py FOLDER [BUILD]: a wheel without pip
    print(build_wheel(sys.argv[1], {"build-dir": sys.argv[2]} if len(sys.argv) > 2 else None))
