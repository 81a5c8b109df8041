"""What a wheel says it is for, against what its compiled module needs: `make wheels`.

    python .ci/check_wheels.py WHEEL...

Read from the binary: processor, oldest system, libraries, symbols. For the stable ABI
abi3audit compares every Python symbol with those of 3.12.
"""

import argparse
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import lief

MOST = 2_000_000  # bytes of a wheel
OURS = {"PyInit__native", "spdp_get_num_threads", "spdp_set_num_threads"}
GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
LOADERS = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def check_linux(data: bytes, tag: str) -> str:
    """Needs no library but the C library's, and no newer one than the tag says."""
    binary = lief.ELF.parse(list(data))
    processor = "x86_64" if tag.endswith("x86_64") else "aarch64"
    assert binary.header.machine_type.name.lower() == processor, binary.header.machine_type
    needed = set(binary.libraries)
    assert needed <= GLIBC | LOADERS, needed
    wanted = [
        version(aux.name)
        for requirement in binary.symbols_version_requirement
        for aux in requirement.get_auxiliary_symbols()
        if aux.name.startswith("GLIBC_")
    ]
    stated = version(re.search(r"manylinux_(\d+_\d+)", tag)[1])
    assert wanted, "no versions of symbols"
    assert max(wanted) <= stated, f"needs glibc {max(wanted)}, the tag says {stated}"
    exported = {one.name for one in binary.exported_symbols}
    assert exported >= OURS, f"does not export {OURS - exported}"
    return f"{processor}, glibc {'.'.join(map(str, max(wanted)))}, {', '.join(sorted(needed))}"


def check_indirect_symbols(data: bytes) -> None:
    """What macOS binds are symbols of the file; a linker may leave holes."""
    SYMTAB, DYSYMTAB = 0x2, 0xB
    at, commands = 32, {}
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        kind, size = struct.unpack_from("<II", data, at)
        commands[kind] = struct.unpack_from(f"<{(size - 8) // 4}I", data, at + 8)
        at += size
    symbols, (offset, count) = commands[SYMTAB][1], commands[DYSYMTAB][12:14]
    table = struct.unpack_from(f"<{count}I", data, offset)
    beyond = [one for one in table if one >= symbols]
    assert not beyond, f"{len(beyond)} of {count} indirect symbols are not in the file"


def check_macos(data: bytes, tag: str) -> str:
    """Needs libSystem alone, on the tag's version; signed for Apple's processors."""
    check_indirect_symbols(data)
    parsed = lief.MachO.parse(list(data))  # owns what is taken from it
    binary = parsed.at(0)
    processor = "arm64" if tag.endswith("arm64") else "x86_64"
    assert binary.header.cpu_type.name.lower() == processor, binary.header.cpu_type
    needed = {one.name for one in binary.libraries if not one.name.startswith("@rpath/_native")}
    assert needed == {"/usr/lib/libSystem.B.dylib"}, needed
    stated = version(re.search(r"macosx_(\d+_\d+)", tag)[1])
    oldest = tuple(binary.build_version.minos[:2])
    assert oldest <= stated, f"needs macOS {oldest}, the tag says {stated}"
    assert processor != "arm64" or binary.has_code_signature, "not signed"
    exported = {one.name.removeprefix("_") for one in binary.exported_symbols}
    assert exported >= OURS, f"does not export {OURS - exported}"
    signed = "signed ad hoc" if binary.has_code_signature else "not signed"
    return f"{processor}, macOS {'.'.join(map(str, oldest))}, libSystem, {signed}"


def check_windows(data: bytes, tag: str) -> str:
    """Needs Python's DLL, Windows and its C runtime alone."""
    binary = lief.PE.parse(list(data))
    assert binary.header.machine.name == "AMD64", binary.header.machine
    needed = {one.name.lower() for one in binary.imports}
    python = "python3.dll" if "abi3" in tag else "python311.dll"
    others = needed - {python, "kernel32.dll"}
    assert python in needed, needed
    assert all(one.startswith("api-ms-win-crt-") or one == "ntdll.dll" for one in others), others
    exported = {one.name for one in binary.get_export().entries}
    assert exported >= OURS, f"does not export {OURS - exported}"
    runtime = "C runtime" if others else "no C runtime"
    return f"AMD64, {python}, kernel32, {runtime}"


def check(wheel: Path) -> str:
    """What was found in a wheel; an error where it contradicts the wheel's tag."""
    assert wheel.stat().st_size < MOST, f"{wheel.stat().st_size} bytes"
    python, abi, tag = wheel.stem.split("-")[2:]
    with zipfile.ZipFile(wheel) as file:
        assert file.testzip() is None
        names = file.namelist()
        (module,) = (name for name in names if name.endswith((".so", ".pyd")))
        about = next(name for name in names if name.endswith(".dist-info/WHEEL"))
        assert f"Tag: {python}-{abi}-{tag}" in file.read(about).decode().splitlines()
        data = file.read(module)
    stable = abi == "abi3"
    assert stable == (".abi3." in module or module.endswith("_native.pyd")), module
    for start, kind in (
        ("manylinux", check_linux),
        ("macosx", check_macos),
        ("win", check_windows),
    ):
        if tag.startswith(start):
            found = kind(data, f"{python}-{abi}-{tag}")
    for path in (str(Path.cwd()).encode(), str(Path.home()).encode()):
        assert len(path) < 3 or path not in data, f"the folder {path.decode()} stands in the binary"
    if stable:
        audit = [sys.executable, "-m", "abi3audit", "--strict", "--assume-minimum-abi3", "3.12"]
        done = subprocess.run([*audit, str(wheel)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        found += "; stable ABI of 3.12"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    failed = False
    for wheel in parser.parse_args().wheels:
        try:
            print(f"{wheel.name}: {check(wheel)}")
        except AssertionError as error:
            failed = True
            print(f"{wheel.name}: WRONG: {error}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
