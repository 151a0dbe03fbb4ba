"""`python -m tests.bench`: the engine beside what you would use instead, as ratios of one run."""

from tests.bench.program import run_program


def main() -> int:
    """Load the libraries and measure; an interrupt while they are loaded ends like one later."""
    from tests.bench.command import main

    return main()


if __name__ == "__main__":
    run_program(main)
