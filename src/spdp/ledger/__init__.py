"""A budget that cannot be overspent: a dataset's account, in a file."""

from spdp.errors import BudgetExceeded
from spdp.ledger.ledger import Ledger, check_ledger

__all__ = ["BudgetExceeded", "Ledger", "check_ledger"]
