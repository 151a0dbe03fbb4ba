"""`python -m tests.session`: kills of the parts of a cluster of processes, and many jobs at once in one."""

import sys

if __name__ == "__main__":
    from tests.session.command import main

    sys.exit(main())
