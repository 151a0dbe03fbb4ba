"""The judge: starts the child, computes what is expected while it runs, and compares plain data.

Never imports or executes learner code. In a notebook it runs in a process of its own (see
`course.grading.remote`), so that nothing done to the kernel can change a verdict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from course.curriculum.manifest import DEFAULT_SEED, VECTORS, VECTORS_VERSION, exercise
from course.curriculum.messages import phrase, title
from course.curriculum.seams import child_job, seam
from course.grading.loading import check_of
from course.grading.report import Report, RuleResult, message
from course.grading.rules import Case, Check, Finding, Row, Rule, RuleStatus, Seen, Status
from course.grading.runner import Grader
from course.grading.shrink import Failure, shrunk
from course.grading.sources import is_stub, loop_around, names_defined, parsed
from course.grading.transcripts import Transcript

__all__ = ["code_hash", "judge", "vectors_version", "warm_up"]

_SOURCE_RULE = "S"
_OUTLIVES, _SLOWER = "outlives", "slows_down"
_TRACE_EVENTS = 60
_ODD = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_CURLY = "\u201c\u201d\u2018\u2019\u00ab\u00bb"
_LOAD_CODES = {
    "SyntaxError": "syntax", "IndentationError": "syntax", "TabError": "tabs", "SystemExit": "left",
    "ModuleNotFoundError": "no_module", "ImportError": "no_module",
}  # fmt: skip


def code_hash(source: str) -> str:
    """The hash of a source as it is written in reports and receipts; ends of lines do not count."""
    normal = "\n".join(line.rstrip() for line in source.strip().splitlines()) + "\n"
    return "sha256:" + hashlib.sha256(normal.encode(errors="surrogatepass")).hexdigest()


@cache
def vectors_version() -> str:
    """Flink's version and the beginning of the hash over all recorded vectors."""
    total = hashlib.sha256()
    for file in sorted(VECTORS.glob("*.json")):
        total.update(file.read_bytes())
    return f"{VECTORS_VERSION}+{total.hexdigest()[:12]}"


@lru_cache(maxsize=8)
def _cases(exercise_id: str, seed: int) -> list[Case]:
    return check_of(exercise_id).cases(seed)


@lru_cache(maxsize=8)
def _expected(exercise_id: str, seed: int) -> list[list[Any]]:
    return check_of(exercise_id).expected(_cases(exercise_id, seed))


def warm_up(exercise_id: str, seed: int) -> None:
    """Compute now what every check of this exercise and seed needs."""
    _expected(exercise_id, seed)


def judge(
    exercise_id: str,
    source: str | None,
    seed: int = DEFAULT_SEED,
    names: Mapping[str, str] | None = None,
    grader: Grader | None = None,
) -> Report:
    """Grade one source; every end of the learner's code is a report, never an exception.

    Args:
        exercise_id: such as "3.1".
        source: the text of the cell or file; None if there is none yet.
        seed: what the random cases are made from; printed, so that a failure can be replayed.
        names: where names that this source may lack are defined, such as {"pack": "cell 12"}.
        grader: what starts the children; by default one for this call.

    Raises:
        NoSuchExerciseError: there is no such exercise.
        GraderError: this machine could not run the check.
    """
    exercise(exercise_id)
    report = Report(exercise_id, Status.NOT_STARTED, seed, vectors_version(), code_hash(source or ""))
    if source is None or not source.strip() or is_stub(exercise_id, source):
        report.rules = _untried(check_of(exercise_id))
        return report
    grader = grader or Grader(child_job(exercise_id))
    with grader.prepared():  # the child loads while we do
        check, cases = check_of(exercise_id), _cases(exercise_id, seed)
        run = grader.start(source, cases)
    try:
        expected = _expected(exercise_id, seed)
        transcript = run.finish()
    except BaseException:
        run.abandon()
        raise
    report.printed, report.printed_text = transcript.printed, transcript.printed_text
    finding = _source_finding(exercise_id, transcript, source, names or {})
    failures: dict[str, Failure] = {}
    if finding:
        findings: dict[str, Finding | None] = {_SOURCE_RULE: finding}
    else:
        findings, failures = _compare_all(check, cases, expected, transcript)
    if not transcript.ended and not any(findings.values()):
        findings = {_SOURCE_RULE: _left_early()}
    untried = next((rule for rule in check.rules if rule.id not in findings), None)
    if untried is not None and not any(findings.values()):
        step = next(case.ran for case in cases if case.rule == untried.id)
        findings[untried.id] = Finding(untried.id, "out_of_time", step, status=Status.TIMEOUT)
    if not any(findings.values()):
        again = _again(grader, source, cases, is_kept=True)
        finding = _source_finding(exercise_id, again, source, names or {})
        if finding is None:
            findings, failures = _kept(check, cases, expected, findings, again)
        else:
            findings = {_SOURCE_RULE: finding}
    failure = next(iter(failures.values()), None)
    if failure is not None and next((rule for rule, each in findings.items() if each), None) == failure.finding.rule:
        rule = next(each for each in check.rules if each.id == failure.finding.rule)
        if failure.finding.status is not Status.TIMEOUT and failure.finding.code != _OUTLIVES:
            with grader.several(), suppress(*_ODD):  # of a part that answers as no driver of ours asks
                failure = shrunk(check, rule, failure, lambda cases: _again(grader, source, cases))
            findings[rule.id] = failure.finding
        with suppress(*_ODD):
            report.trace = _trace(check, failure)
    _fill(report, check, {rule: _placed(each, names or {}) for rule, each in findings.items()}, source)
    return report


def _again(grader: Grader, source: str, cases: Sequence[Case], *, is_kept: bool = False) -> Transcript:
    """Run the same source on other cases; or on the same, without loading it anew for each."""
    run = grader.start(source, cases, is_kept=is_kept)
    try:
        return run.finish()
    except BaseException:
        run.abandon()
        raise


def _source_finding(exercise_id: str, transcript: Transcript, source: str, names: Mapping[str, str]) -> Finding | None:
    """Rule S: the code can be loaded by itself, brings exactly one part, and leaves the engine alone."""
    ran = phrase("whole")
    if transcript.problem is None:
        if transcript.tampered:
            return Finding("S", "tampered", ran, values={"names": ", ".join(transcript.tampered[:3])})
        if transcript.loaded:
            return None
        code = "load_timeout" if transcript.timed_out else "vanished_loading"
        return Finding("S", code, ran, status=Status.TIMEOUT if transcript.timed_out else Status.ERROR)
    problem = transcript.problem
    wanted = seam(exercise_id)
    listed = [name[:60] for name in _texts(problem.get("names"))]
    others = [name[:8] for name in _texts(problem.get("others"))]
    values = {"names": ", ".join(listed) or phrase("nothing"), "name": wanted.name, "member": wanted.member,
              "exercise": exercise_id, "others": ", ".join(others)}  # fmt: skip
    kind = str(problem.get("problem"))
    if kind == "absent" and others:
        kind = "wrong_exercise"
    if kind == "absent" and wanted.kind == "class" and wanted.member in listed:
        return Finding("S", "function_for_class", ran, values=values, status=Status.ERROR)
    if kind == "reference_part":
        kind = "reference_function" if wanted.kind == "function" else kind
        values["text"] = wanted.part
    if kind in ("ambiguous", "absent", "wrong_exercise", "not_a_class", "missing_method"):
        status = Status.FAILED if kind == "missing_method" else Status.ERROR
        code = f"{kind}_{wanted.kind}" if kind in ("ambiguous", "absent") else kind
        return Finding("S", code, ran, values=values, status=status)
    error = problem.get("error")
    error = error if isinstance(error, dict) else {}
    own = parsed(source)
    return _load_error(kind, error, values, names, names_defined(own) if own is not None else set())


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _load_error(
    kind: str, error: Mapping[str, Any], values: dict[str, str], names: Mapping[str, str], own: set[str]
) -> Finding:
    ran = phrase("whole")
    name = str(error.get("name") or "")
    line = error.get("line") if isinstance(error.get("line"), int) else None
    error_type = str(error.get("type", "an exception"))
    text = str(error.get("text") or values.get("text") or phrase("no_text"))
    values = {**values, "error": error_type, "text": text, "missing": name,
              "place": names.get(name, ""), "where": phrase("first_lines")}  # fmt: skip
    if kind == "timeout":
        return Finding("S", "load_timeout", ran, values=values, status=Status.TIMEOUT, line=line)
    if kind in ("reference_part", "reference_function", "fenced", "prints"):
        return Finding("S", kind, ran, values=values, status=Status.ERROR, line=line)
    if error_type == "NameError":
        code = "name_later" if name in own else "name_elsewhere" if name in names else "name_unknown"
    else:
        code = _LOAD_CODES.get(error_type, "load_raised")
        code = "curly_quotes" if code == "syntax" and any(each in text for each in _CURLY) else code
    return Finding("S", code, ran, values=values, status=Status.ERROR, line=line)


def _compare_all(
    check: Check, cases: Sequence[Case], expected: Sequence[list[Any]], transcript: Transcript
) -> tuple[dict[str, Finding | None], dict[str, Failure]]:
    """For every rule that was tried, its finding or None where it holds; and the failures that `show` can draw."""
    found: dict[str, Finding | None] = {}
    failing: dict[str, Failure] = {}
    for rule in check.rules:
        mine = [index for index, case in enumerate(cases) if case.rule == rule.id]
        assert mine, f"rule {rule.id} of {check.exercise} has no case, so it could never fail"
        for index in mine:
            seen = transcript.seen.get(index)
            if seen is None:
                lost = _lost(rule.id, cases[index], index, transcript)
                if lost is not None:
                    found[rule.id] = lost
                elif rule.id in found:
                    del found[rule.id]  # only part of its cases were run: that is not a rule that holds
                break
            seen, finding = _compared(check, rule, cases[index], seen, expected[index])
            found[rule.id] = finding
            if finding is not None:
                failing[rule.id] = Failure(cases[index], seen, expected[index], finding)
                break
    return found, failing


def _compared(check: Check, rule: Rule, case: Case, seen: Seen, expected: list[Any]) -> tuple[Seen, Finding | None]:
    """The finding about one case, and what was compared. Events of another shape are those of no driver of ours: a
    forged transcript's, or of code that put its own into ours.
    """
    try:
        return seen, check.compare(rule, case, seen, expected)
    except Exception:  # noqa: BLE001 - whatever the transcript holds, a check ends with a report
        seen = Seen([], {"problem": "not_plain", "error": None})
        return seen, check.compare(rule, case, seen, expected)


def _kept(
    check: Check,
    cases: Sequence[Case],
    expected: Sequence[list[Any]],
    holds: dict[str, Finding | None],
    transcript: Transcript,
) -> tuple[dict[str, Finding | None], dict[str, Failure]]:
    """What the code that is right in each case by itself does in all of them, one after the other.

    Then a difference comes from what it has kept, and the rule that shows it is not what was misunderstood. The same
    cases have twice the time here, without loading: if that is not enough, each call has more to do than the last.
    """
    found, failing = _compare_all(check, cases, expected, transcript)
    first = next(((rule, each) for rule, each in found.items() if each is not None), None)
    if first is None:
        untried = next((each.id for each in check.rules if each.id not in found), None)
        if untried is not None:
            ran = next(case.ran for case in cases if case.rule == untried)
            return {**holds, untried: Finding(untried, _SLOWER, ran, status=Status.TIMEOUT)}, {}
        return (holds, {}) if transcript.ended else ({_SOURCE_RULE: _left_early()}, {})
    code = _SLOWER if first[1].status is Status.TIMEOUT else _OUTLIVES
    rule, finding = first[0], replace(first[1], code=code, line=None)
    failures = {rule: replace(failing[rule], finding=finding)} if rule in failing else {}
    return {**holds, rule: finding}, failures


def _left_early() -> Finding:
    """A child that answered everything and then left without its last word may have been made to."""
    return Finding(_SOURCE_RULE, "vanished_loading", phrase("whole"), status=Status.ERROR)


def _trace(check: Check, failure: Failure) -> dict[str, Any] | None:
    """The failing case, event by event, yours and Flink's; None if it is huge."""
    yours, flink = failure.seen.events, failure.expected
    if max(len(yours), len(flink)) > _TRACE_EVENTS:
        return None
    return {
        "ran": failure.case.ran,
        "ops": failure.case.ops,
        "yours": yours,
        "flink": flink,
        "yours_lines": [check.tell(event) for event in yours],
        "flink_lines": [check.tell(event) for event in flink],
    }


def _lost(rule: str, case: Case, index: int, transcript: Transcript) -> Finding | None:
    """The finding for a case without an answer; None if an earlier one already explains it."""
    if index != transcript.step:
        return None
    if transcript.timed_out:
        return Finding(rule, "endless", case.ran, (), {"where": phrase("a_call"), "step": case.ran}, Status.TIMEOUT)
    rows = [Row(phrase("your_code"), "", phrase("vanished"))]
    return Finding(rule, "vanished", case.ran, rows, {"where": phrase("a_call")}, Status.ERROR)


def _placed(finding: Finding | None, names: Mapping[str, str]) -> Finding | None:
    """A finding about an unknown name, with the cell that defines the name if one does."""
    if finding is None or finding.code != "unknown_name" or finding.values["name"] not in names:
        return finding
    name = finding.values["name"]
    return replace(finding, code="name_elsewhere", values={"missing": name, "place": names[name]})


def _untried(check: Check) -> list[RuleResult]:
    ids = [_SOURCE_RULE, *(rule.id for rule in check.rules)]
    return [RuleResult(each, title(check.exercise, each), RuleStatus.NOT_TRIED, "") for each in ids]


def _fill(report: Report, check: Check, findings: Mapping[str, Finding | None], source: str) -> None:
    """Turn findings into rule results, in order; the first failed one decides the status."""
    report.rules = _untried(check)
    source_failed = findings.get(_SOURCE_RULE) is not None
    for result in report.rules:
        if result.id == _SOURCE_RULE and not source_failed:
            result.status = RuleStatus.PASSED
        elif result.id in findings:
            finding = findings[result.id]
            result.status = RuleStatus.PASSED if finding is None else RuleStatus.FAILED
            result.finding = finding
    failed = [result for result in report.rules if result.finding is not None]
    for result in failed:
        assert result.finding is not None
        if result.finding.status is Status.TIMEOUT:
            result.finding = replace(result.finding, line=loop_around(source, result.finding.line))
        result.message = message(report.exercise, result.finding, source)
        result.ended = result.finding.status
    if failed and failed[0].finding is not None:
        report.status = failed[0].finding.status
    elif all(result.status is RuleStatus.PASSED for result in report.rules) and len(report.rules) > 1:
        report.status = Status.PASSED
    else:
        report.status = Status.TIMEOUT
