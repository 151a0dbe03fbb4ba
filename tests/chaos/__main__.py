"""`python -m tests.chaos`: a job under faults, run by run, until all seeds have passed."""

import sys

if __name__ == "__main__":
    from tests.chaos.command import main

    sys.exit(main())
