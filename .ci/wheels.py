"""Wheels for five platforms, made on one Linux machine: `make wheels`.

    python .ci/wheels.py [PLATFORM...] [--output dist]

ziglang, from the package index, is Clang with the headers and C++ runtimes of every
platform. CMakeLists.txt is used as it stands; what it finds when it asks for Python are
headers alone, since no Python of the platform is here to be asked. Kernels are compiled
once for a platform; the module that calls them twice, for Python 3.11 and for the
stable ABI from 3.12 on. Both are put into the wheel of a build without kernels.
"""

import argparse
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import nanobind
import ziglang
from debian import unpacked
from wheel.wheelfile import WheelFile

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "wheels"
ZIG = Path(ziglang.__file__).with_name("zig")


class Platform(NamedTuple):
    zig: str  # the target, with the oldest system it is for
    system: str  # as CMake calls it
    tag: str
    suffix: str  # of a module for Python 3.11


PLATFORMS = {
    "linux-x86_64": Platform(
        "x86_64-linux-gnu.2.28",
        "Linux",
        "manylinux_2_28_x86_64",
        ".cpython-311-x86_64-linux-gnu.so",
    ),
    "linux-aarch64": Platform(
        "aarch64-linux-gnu.2.28",
        "Linux",
        "manylinux_2_28_aarch64",
        ".cpython-311-aarch64-linux-gnu.so",
    ),
    "macos-arm64": Platform(
        "aarch64-macos.11.0", "Darwin", "macosx_11_0_arm64", ".cpython-311-darwin.so"
    ),
    "macos-x86_64": Platform(
        "x86_64-macos.11.0", "Darwin", "macosx_11_0_x86_64", ".cpython-311-darwin.so"
    ),
    "windows-x86_64": Platform(
        "x86_64-windows-gnu", "Windows", "win_amd64", ".cp311-win_amd64.pyd"
    ),
}
# Python's headers: version, Debian's release that has it, the wheel's tag
HEADERS = [("3.11", "bookworm", "cp311-cp311"), ("3.13", "trixie", "cp312-abi3")]

# nanobind's headers use stderr, which Python.h declares no longer under the limited API
FLAGS = "-g0 -include stdio.h"
TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME {system})
set(CMAKE_SYSTEM_PROCESSOR {processor})
set(CMAKE_CXX_COMPILER "{zig}" c++ -target {target})
set(CMAKE_AR "{tools}/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "{tools}/ranlib" CACHE FILEPATH "")
set(CMAKE_RC_COMPILER "{tools}/rc")
set(CMAKE_INSTALL_NAME_TOOL "{tools}/never")
set(CMAKE_STRIP "" CACHE FILEPATH "")
set(CMAKE_OSX_SYSROOT "" CACHE STRING "")
set(CMAKE_OSX_ARCHITECTURES "" CACHE STRING "")
set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "")
set(CMAKE_CXX_FLAGS_INIT "{flags}")
set(CMAKE_MODULE_PATH "{tools}")
"""
# in place of CMake's own FindPython
FIND_PYTHON = """\
set(Python_FOUND TRUE)
set(Python_VERSION {version})
string(REPLACE "." ";" numbers {version})
list(GET numbers 0 Python_VERSION_MAJOR)
list(GET numbers 1 Python_VERSION_MINOR)
set(Python_INTERPRETER_ID Python)
set(Python_EXECUTABLE "{python}")
set(Python_SOABI made)
set(Python_SOSABI made)
set(Python_INCLUDE_DIRS "{include}")
add_executable(Python::Interpreter IMPORTED)
foreach(kind Module SABIModule)
  add_library(Python::${{kind}} INTERFACE IMPORTED)
  target_include_directories(Python::${{kind}} INTERFACE "{include}")
  target_link_libraries(Python::${{kind}} INTERFACE {library})
endforeach()
"""
# zig's linker for macOS takes neither nanobind's list of Python's symbols nor bundles,
# and with -x in place of -s leaves holes in its table of indirect symbols. Modules for
# Windows are stripped by nobody else: they would be a tenth larger
LINK = """\
function(link_with_zig)
  set_property(TARGET _native PROPERTY LINK_OPTIONS {options})
endfunction()
cmake_language(DEFER CALL link_with_zig)
"""
LINKED = {
    "Darwin": 'set(CMAKE_SHARED_MODULE_CREATE_CXX_FLAGS "-shared '
    '-Wl,-install_name,@rpath/_native.so")\n'
    + LINK.format(options="-Wl,-undefined,dynamic_lookup -Wl,-s"),
    "Windows": LINK.format(options="-Wl,-s"),
}
# what Python's headers ask of pyconfig.h on 64-bit Windows
WINDOWS = """\
#define MS_WINDOWS
#define MS_WIN32
#define MS_WIN64
#define Py_ENABLE_SHARED 1
#define HAVE_DECLSPEC_DLL
#define HAVE_STDDEF_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_WCHAR_H 1
#define NT_THREADS
#define WITH_THREAD
""" + "".join(
    f"#define SIZEOF_{name} {size}\n"
    for name, size in {
        "SHORT": 2, "INT": 4, "LONG": 4, "LONG_LONG": 8, "VOID_P": 8, "SIZE_T": 8, "TIME_T": 8,
        "WCHAR_T": 2, "FLOAT": 4, "DOUBLE": 8, "FPOS_T": 8, "HKEY": 8, "PID_T": 4, "OFF_T": 4,
    }.items()
)  # fmt: skip


def run(*command: object, **options: object) -> None:
    """Run a command; what it says is shown if it fails."""
    done = subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout.decode()[-4000:]}")


def python_headers(platform: Platform, version: str, suite: str) -> Path:
    """Python's headers for a platform."""
    place = unpacked(WORK / f"python-{version}", "amd64", f"libpython{version}-dev", suite=suite)
    kind = "windows" if platform.system == "Windows" else "posix"
    include = WORK / f"include-{kind}-{version}"
    if not include.exists():
        shutil.copytree(place / "usr/include" / f"python{version}", include)
        posix = place / "usr/include/x86_64-linux-gnu" / f"python{version}" / "pyconfig.h"
        (include / "pyconfig.h").write_text(WINDOWS if kind == "windows" else posix.read_text())
    return include


def import_library(folder: Path, tag: str) -> Path:
    """For Windows: by this library a module finds Python's functions in its DLL."""
    dll = "python3.dll" if tag.endswith("abi3") else "python311.dll"
    symbols = Path(nanobind.cmake_dir()) / "darwin-ld-cpython.sym"
    names = [line[len("-U _") :] for line in symbols.read_text().split("\n") if line[:4] == "-U _"]
    definition = folder / f"{dll}.def"
    definition.write_text("\n".join([f"LIBRARY {dll}", "EXPORTS", *names, ""]))
    library = folder / f"lib{dll}.a"
    run(ZIG, "dlltool", "-m", "i386:x86-64", "-D", dll, "-d", definition, "-l", library)
    return library


def build(name: str, version: str, suite: str, tag: str) -> Path:
    """The compiled module for a platform and a Python."""
    platform = PLATFORMS[name]
    folder = WORK / name
    tools = folder / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    for tool in ("ar", "ranlib", "rc", "never"):
        script = f'exec "{ZIG}" {tool} "$@"' if tool != "never" else "exit 1"
        (tools / tool).write_text(f"#!/bin/sh\n{script}\n")
        (tools / tool).chmod(0o755)
    library = import_library(folder, tag) if platform.system == "Windows" else ""
    find = FIND_PYTHON.format(
        version=version,
        python=sys.executable,
        include=python_headers(platform, version, suite),
        library=f'"{library}"' if library else "",
    )
    (tools / "FindPython.cmake").write_text(find + LINKED.get(platform.system, ""))
    toolchain = folder / "toolchain.cmake"
    machine = platform.zig.partition("-")[0]
    toolchain.write_text(
        TOOLCHAIN.format(
            system=platform.system,
            processor="arm64" if name == "macos-arm64" else machine,
            zig=ZIG,
            target=platform.zig,
            tools=tools,
            flags=FLAGS,
        )
    )
    made = folder / "made"
    for old in made.glob("_native*"):
        old.unlink()
    settings = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DCMAKE_BUILD_TYPE=Release"]
    settings.append(f"-Dnanobind_DIR={nanobind.cmake_dir()}")
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", made, *settings)
    run("ninja", "-C", made, "_native")
    (module,) = (one for one in made.glob("_native*") if one.suffix in (".so", ".pyd", ".dll"))
    suffix = platform.suffix
    if tag.endswith("abi3"):
        suffix = ".pyd" if platform.system == "Windows" else ".abi3.so"
    return module.rename(folder / f"_native{suffix}")


def pure_wheel() -> Path:
    """The wheel of a build without kernels: what all wheels have in common."""
    folder = WORK / "pure"
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    run(*command, "-w", folder, "-C", "wheel.cmake=false", "-C", f"build-dir={folder}/build", ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def assemble(pure: Path, module: Path, tag: str, output: Path) -> Path:
    """The pure wheel with a compiled module and the tag that goes with it."""
    name, version = pure.name.split("-")[:2]
    target = output / f"{name}-{version}-{tag}.whl"
    target.unlink(missing_ok=True)
    head = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(pure) as old, WheelFile(target, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename in (f"{head}/RECORD", f"{head}/WHEEL"):
                continue
            new.writestr(entry, data, zipfile.ZIP_DEFLATED)
        new.write(module, f"{name}/kernels/{module.name}", zipfile.ZIP_DEFLATED)
        lines = old.read(f"{head}/WHEEL").decode().splitlines()
        kept = [one for one in lines if one and not one.startswith(("Tag:", "Root-Is-Purelib:"))]
        text = [*kept, "Root-Is-Purelib: false", f"Tag: {tag}", ""]
        new.writestr(f"{head}/WHEEL", "\n".join(text), zipfile.ZIP_DEFLATED)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("platforms", nargs="*", default=list(PLATFORMS), metavar="PLATFORM")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    unknown = set(options.platforms) - set(PLATFORMS)
    if unknown:
        parser.error(f"no such platform: {', '.join(unknown)}; there are {', '.join(PLATFORMS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    pure = pure_wheel()
    for name in options.platforms:
        for version, suite, tag in HEADERS:
            module = build(name, version, suite, tag)
            wheel = assemble(pure, module, f"{tag}-{PLATFORMS[name].tag}", options.output)
            size = wheel.stat().st_size / 1e6
            print(f"{time.monotonic() - start:5.0f} s  {size:4.2f} MB  {wheel.name}", flush=True)


if __name__ == "__main__":
    main()
