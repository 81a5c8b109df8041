"""What people look at: the page of a release, pictures, and tables for a terminal.

Everything here is computed from the released matrix and its certificate, that is from
what is public already.
"""

from spdp.report.figures import ledger_picture, plan_picture
from spdp.report.page import html_report
from spdp.report.terminal import release_table, terminal_curve

__all__ = ["html_report", "ledger_picture", "plan_picture", "release_table", "terminal_curve"]
