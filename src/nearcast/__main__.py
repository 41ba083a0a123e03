"""`python -m nearcast`: the command line."""

import sys

from nearcast.cli import main

if __name__ == "__main__":
    sys.exit(main())
