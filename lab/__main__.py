"""`python -m lab`."""

import sys

from lab.commands.root import main

if __name__ == "__main__":
    sys.exit(main())
