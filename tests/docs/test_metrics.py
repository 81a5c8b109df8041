"""The page on metrics: it names every metric, and the paper's page."""

from pathlib import Path

from spdp.charts import CHARTS
from spdp.paper.common import STATEMENTS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "metrics.md").read_text("utf-8")


def test_every_metric_is_on_the_page():
    for name in CHARTS:
        assert f'| `"{name}"` |' in PAGE


def test_the_papers_page_has_the_proof():
    assert "## Beyond the paper: any flat metric" in STATEMENTS
    assert STATEMENTS in (DOCS / "paper.md").read_text("utf-8")
