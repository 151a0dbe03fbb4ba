"""Lesson 6: wrong answers that are nearly the reference part, and what each is told."""

from __future__ import annotations

import pytest

from course.curriculum.stubs import solution
from course.grading.judge import judge

_ASKED = solution("6.1").replace("upstream", "up").replace("downstream", "down").replace("return (", "answer = (")
SOURCES = {"6.1": f"{_ASKED.rstrip()}\n    return answer\n", "6.2": solution("6.2"), "6.3": solution("6.3")}
_LAST, _INPUTS = "        and up.parallelism == down.parallelism\n", "len(graph.in_edges(down.id)) == 1"
_LOOP, _UNKNOWN = "for node in graph.in_order():", "head_of[edge.source]"
_INIT, _SET = "        super().__init__(operator, tag)\n", "        self.value_type = value_type\n"
_MAIN = "            super().collect(StreamRecord(self.value_type.copy(record.value), record.timestamp))\n"
_SIDE = "            super().collect_side(tag, StreamRecord(self.value_type.copy(record.value), record.timestamp))\n"
_MINE, _OTHERS = "if self.tag is None", "if tag == self.tag"
_EXCHANGE = "            record.value, value = self.value_type.copy(record.value), record.value\n"
_DEF, _RETURN = "def is_chainable", "    return answer"

WRONG = {
    ("6.1", "upstream_is_a_source"): ([(_LAST, _LAST + "        and not graph.in_edges(edge.source)\n")],
                                      "A.forbids_sources"),
    ("6.1", "upstream_has_one_input"): ([(_LAST, _LAST + "        and len(graph.in_edges(up.id)) <= 1\n")],
                                        "A.forbids_sources"),
    ("6.1", "downstream_is_a_sink"): ([(_LAST, _LAST + "        and len(graph.out_edges(down.id)) == 0\n")],
                                      "A.forbids_sinks"),
    ("6.1", "counts_operators"): ([(_INPUTS, "len({each.source for each in graph.in_edges(down.id)}) == 1")],
                                  "D.ignores_parallel"),
    ("6.1", "first_two"): ([("graph.nodes[edge.source], graph.nodes[edge.target]", "list(graph.nodes.values())[:2]")],
                           "A.takes_the_first"),
    ("6.1", "sorted_by_id"): ([("graph.nodes[edge.source], graph.nodes[edge.target]",
                                "(graph.nodes[each] for each in sorted([edge.source, edge.target]))")],
                              "A.takes_the_first"),
    ("6.1", "same_number_object"): ([("up.parallelism ==", "up.parallelism is")], "A.forbids_many"),
    ("6.1", "takes_the_operators_out"): ([("graph.nodes[edge.source],", "graph.nodes.pop(edge.source),")],
                                         "A.changes_graph"),
    ("6.1", "takes_the_edge_out"): ([(_RETURN, "    graph.edges.remove(edge)\n" + _RETURN)],
                                    "A.changes_graph"),
    ("6.1", "sets_the_parallelism"): ([(_RETURN, "    down.parallelism = up.parallelism\n" + _RETURN)],
                                      "C.changes_graph"),
    ("6.1", "a_tuple"): ([("return answer", "return answer,")], "A.no_truth"),
    ("6.1", "a_list"): ([("return answer", "return [answer]")], "A.no_truth"),
    ("6.1", "a_coroutine"): ([(_DEF, "async " + _DEF)], "A.no_truth"),
    ("6.1", "an_operator"): ([("return answer", "return answer and down")], "A.no_truth"),
    ("6.1", "a_text"): ([("return answer", "return str(answer)")], "A.no_truth"),
    ("6.1", "nothing"): ([("    return answer\n", "")], "A.no_answer"),
    ("6.2", "as_added"): ([(_LOOP, "for node in graph.nodes.values():")], "F.goes_as_added"),
    ("6.2", "as_added_or_the_source"): ([(_LOOP, "for node in graph.nodes.values():"),
                                         (_UNKNOWN, "head_of.get(edge.source, edge.source)")], "F.out_of_order"),
    ("6.2", "takes_the_operators_out"): ([(_LOOP, "for node in [graph.nodes.pop(n.id) for n in graph.in_order()]:")],
                                         "A.changes_graph"),
    ("6.2", "takes_the_edges_out"): ([("    return chains", "    graph.edges.clear()\n    return chains")],
                                     "A.changes_graph"),
    ("6.3", "base_left_alone"): ([(_INIT, "        self.operator, self.tag = operator, tag\n")], "A.base_not_ready"),
    ("6.3", "base_half_done"): ([(_INIT, """
        from refimpl.task.outputs import WatermarkGauge
        self.operator, self.tag, self.watermark_gauge, self._is_idle = operator, tag, WatermarkGauge(), True
""")], "A.passes_nothing_else_on"),
    ("6.3", "tag_forgotten"): ([(_INIT, "        super().__init__(operator)\n")], "D.main_into_side"),
    ("6.3", "original_handed_on"): ([(_MAIN, _EXCHANGE + """\
            super().collect(StreamRecord(value, record.timestamp))
""")], "B.values_exchanged"),
    ("6.3", "original_of_a_side_record"): ([(_SIDE, _EXCHANGE + """\
            super().collect_side(tag, StreamRecord(value, record.timestamp))
""")], "D.values_exchanged"),
    ("6.3", "copy_into_the_sender_s_record"): ([(_MAIN, """\
            record.value = self.value_type.copy(record.value)
            super().collect(record)
""")], "B.record_shared"),
    ("6.3", "type_in_the_class"): ([(_SET, "        CopyingChainingOutput.value_type = value_type\n")],
                                   "F.kept_in_the_class"),
    ("6.3", "operator_in_the_class"): ([(_SET, _SET + """\
        del self.operator
        CopyingChainingOutput.operator = operator
""")], "A.kept_in_the_class"),
    ("6.3", "tag_in_the_class"): ([(_SET, _SET + "        del self.tag\n        CopyingChainingOutput.tag = tag\n")],
                                  "A.kept_in_the_class"),
    ("6.3", "side_through_collect"): ([(_SIDE, _MAIN)], "D.side_by_collect"),
    ("6.3", "side_through_its_own_collect"): ([(_SIDE, "            self.collect(record)\n")], "D.side_by_collect"),
    ("6.3", "same_tag_object"): ([(_OTHERS, "if tag is self.tag")], "D.side_dropped"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("exercise", SOURCES)
def test_what_the_wrong_ones_are_made_from_passes(exercise):
    report = judge(exercise, SOURCES[exercise])
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "name"), WRONG)
def test_a_wrong_part_is_told_its_belief(exercise, name):
    changes, code = WRONG[exercise, name]
    source = SOURCES[exercise]
    for old, new in changes:
        assert source.count(old) == 1
        source = source.replace(old, new)
    report = judge(exercise, source)
    assert not report.passed
    failed = report.failed_rule
    assert f"{failed.id}.{failed.finding.code}" == code, str(report)
