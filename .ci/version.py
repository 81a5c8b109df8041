"""Whether a tag and the project's version agree: python .ci/version.py v0.3.0"""

import sys
import tomllib
from pathlib import Path

text = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
VERSION = tomllib.loads(text)["project"]["version"]

if __name__ == "__main__" and sys.argv[1:] != [f"v{VERSION}"]:
    sys.exit(f"the tag must be v{VERSION}, the version in pyproject.toml; got {sys.argv[1:]}")
