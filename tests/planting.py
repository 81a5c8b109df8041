"""Tests run with errors planted in spdp's sources as they are imported.

An error is a module, an old text that is there exactly once, and a new one. No file is
changed.
"""

import importlib
import json
import os
import subprocess
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from tempfile import TemporaryFile

import pytest

SOURCE = Path(__file__).parents[1] / "src"


def file_of(module):
    """The source of a module."""
    return SOURCE.joinpath(*module.split(".")).with_suffix(".py")


def planted(text, old, new):
    """A text with an error."""
    assert text.count(old) == 1, (old, text.count(old))
    return text.replace(old, new)


class Planted(SourceFileLoader):
    """Loads a module with errors, and never from compiled code."""

    def __init__(self, module, path, errors):
        super().__init__(module, path)
        self.errors = errors

    def get_code(self, fullname):
        text = Path(self.path).read_text(encoding="utf-8")
        for old, new in self.errors:
            text = planted(text, old, new)
        return compile(text, self.path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Finds the modules in which errors are planted."""

    def __init__(self, errors):
        self.errors = errors

    def find_spec(self, fullname, path=None, target=None):
        errors = [(old, new) for module, old, new in self.errors if module == fullname]
        if not errors:
            return None
        file = str(file_of(fullname))
        return spec_from_file_location(fullname, file, loader=Planted(fullname, file, errors))


def started():
    """A process that runs tests with errors, each in a fork of its own."""
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = os.environ | {"PYTHONPATH": paths}
    return subprocess.Popen([sys.executable, __file__], env=environment, cwd=SOURCE.parent, **given)


def run(server, test, errors):
    """The exit code and output of a test, with errors planted."""
    server.stdin.write(json.dumps([test, errors]) + "\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())


def serve():
    """Read tests, and write what came of them."""
    for name in ("numpy", "scipy.stats", "flint", "sklearn.base", "typer", "msgspec"):
        importlib.import_module(name)  # once, and never spdp
    for line in sys.stdin:
        test, errors = json.loads(line)
        with TemporaryFile() as output:
            child = os.fork()
            if not child:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                sys.meta_path.insert(0, Finder(errors))
                words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
                os._exit(pytest.main([*words, str(SOURCE.parent / "tests" / test)]))
            _, status = os.waitpid(child, 0)
            output.seek(0)
            found = output.read().decode("utf-8", "replace")
        print(json.dumps([os.waitstatus_to_exitcode(status), found]), flush=True)


if __name__ == "__main__":
    serve()
