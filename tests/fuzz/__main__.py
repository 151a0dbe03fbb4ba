"""`python -m tests.fuzz`: hostile bytes for both ends of a connection, until somebody has had enough."""

import sys

if __name__ == "__main__":
    from tests.fuzz.command import main

    sys.exit(main())
