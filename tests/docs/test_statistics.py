"""The page on statistics: its code runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def test_code_runs():
    code = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert code
    exec(compile("\n".join(code), str(PAGE), "exec"), {})
