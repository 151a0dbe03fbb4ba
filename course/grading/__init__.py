"""Grading: learner code runs in a child, plain data comes back, another process judges it.

Read `rules` (what a rule and a finding are), `runner` and `child` (how the code is run), `judge`
(how the transcript is compared) and `report` (what the learner sees), in that order.
"""
