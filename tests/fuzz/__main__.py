"""`python -m tests.fuzz`: hostile bytes for both ends of a connection, until somebody has had enough."""

import sys

from course.compiled.choice import EngineUnavailable, choose, wanted


def main() -> int:
    """Take the engine before anything of it is loaded, and fuzz."""
    try:
        if remark := choose(wanted(sys.argv[1:])):
            print(remark, file=sys.stderr)
    except EngineUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    from tests.fuzz.command import main

    return main()


if __name__ == "__main__":
    sys.exit(main())
