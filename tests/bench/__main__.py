"""`python -m tests.bench`: the engine beside what you would use instead, as ratios of one run."""

import sys

if __name__ == "__main__":
    try:
        from tests.bench.command import main

        sys.exit(main())
    except KeyboardInterrupt:  # while libraries were loaded; the command handles its own
        sys.exit(130)
