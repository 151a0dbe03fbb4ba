"""`sluice trace`: what a run's trace says, asked through Spark."""

from __future__ import annotations

import argparse
import json
import sys

__all__ = ["add_arguments", "run"]

_NAMES = (
    "progress", "bottleneck", "residency", "stalls", "throughput", "latency", "in_flight", "gaps", "timeline",
    "invariant",
)  # fmt: skip
"""Those of `course.data.trace_queries.QUESTIONS`, which need not be loaded to be listed."""

_ASKED_BY_DEFAULT = ("progress", "bottleneck", "residency", "stalls", "invariant")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "trace", metavar="FILE_OR_DIR", help="what `sluice run` or `sluice demo` wrote with --trace DIR, or a file"
    )
    parser.add_argument(
        "--question",
        action="append",
        choices=_NAMES,
        metavar="NAME",
        help=f"one of {', '.join(_NAMES)}; may be given several times (default: {', '.join(_ASKED_BY_DEFAULT)})",
    )
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="rows of each table (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object with all rows, and nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Ask and print; 1 if the law does not hold that each buffer is sent once and comes once, in order."""
    from course.data.answers import as_json, as_table
    from course.data.session import cancels, spark
    from course.data.trace_queries import QUESTIONS, TraceMissingError, load_trace

    if arguments.limit < 1:
        print(f"--limit must be at least 1, got {arguments.limit}", file=sys.stderr)
        return 2
    session = spark("sluice trace")
    answers = {}
    holds = True
    with cancels(session):
        try:
            trace = load_trace(session, arguments.trace)
        except TraceMissingError as error:
            print(error, file=sys.stderr)
            return 2
        for name in arguments.question or _ASKED_BY_DEFAULT:
            question = QUESTIONS[name]
            answer = question.ask(trace).cache()
            if name == "invariant":
                holds = answer.isEmpty()
            if arguments.json:
                answers[name] = as_json(answer)
            else:
                print(f"{name}: {question.meaning}\n\n{as_table(answer, arguments.limit) or question.nothing}\n")
            answer.unpersist()
    if arguments.json:
        print(json.dumps(answers))
    return 0 if holds else 1
