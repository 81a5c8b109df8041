"""The page on statistics: its code runs, in order."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def test_code_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
