"""Laws of errors, and bounds on them."""
