"""Packages of Debian for any processor, unpacked into a folder; needs apt, no rights.

The wheels take Python's headers of it, their tests a Python for another processor.
"""

import subprocess
from pathlib import Path

SOURCE = (
    "deb [arch={arch} signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
    "{mirror} {suite} main\n"
)


def mirror() -> str:
    """Where this system gets its own packages of Debian."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]


def unpacked(root: Path, arch: str, *packages: str, suite: str = "trixie") -> Path:
    """A folder with these packages and all that they need, made unless it is there."""
    done = root / ".done"
    if done.exists() and done.read_text().split() == sorted(packages):
        return root
    root = root.absolute()
    state = root / "apt"
    for folder in ("lists/partial", "archives/partial", "etc/sources.list.d", "etc/preferences.d"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / "sources.list").write_text(SOURCE.format(arch=arch, suite=suite, mirror=mirror()))
    settings = {
        "APT::Architecture": arch,
        "APT::Architectures": arch,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
        "Dir::Etc": state / "etc",
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
        "Dir::Cache::archives": state / "archives",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "--yes", "--download-only", "install", *packages], check=True)
    (root / "usr/lib").mkdir(parents=True, exist_ok=True)
    if not (root / "lib").exists():
        (root / "lib").symlink_to("usr/lib")
    for package in sorted((state / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    done.write_text("\n".join(sorted(packages)))
    return root
