"""``python -m spdp``."""

from spdp.cli import main

if __name__ == "__main__":
    main()
