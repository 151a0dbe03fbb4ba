"""`python -m tests.bench`: the engine beside what you would use instead, as ratios of one run."""

import sys

from course.compiled.choice import EngineUnavailable, choose, in_use, wanted
from tests.bench.program import run_program


def main() -> int:
    """Take the engine, load the libraries and measure; an interrupt while they are loaded ends like one later."""
    try:
        asked = wanted(sys.argv[1:])
        if remark := choose("compiled" if asked == "both" else asked):
            print(remark, file=sys.stderr)
    except EngineUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    from tests.bench.command import main

    return main(can_be_both=asked is None and in_use() == "compiled")


if __name__ == "__main__":
    run_program(main)
