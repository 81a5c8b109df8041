"""What people look at: pages of releases and plans, pictures, tables for a terminal.

Everything here is computed from the released matrix and its certificate, that is from
what is public already.
"""

from spdp.report.figures import ledger_picture, plan_picture
from spdp.report.page import html_report, plan_page
from spdp.report.terminal import release_table, terminal_curve

__all__ = [
    "html_report",
    "ledger_picture",
    "plan_page",
    "plan_picture",
    "release_table",
    "terminal_curve",
]
