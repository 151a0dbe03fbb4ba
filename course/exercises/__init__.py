"""The exercises, each a folder with all that belongs to it; `course/README.md` adds one as an example.

    exercise.toml               its title, and the seam: which part of the engine a learner writes
    check.py, driver.py         its rules and cases, and what runs a case with a learner's part (`course/checks`)
    messages.toml               what is said of an answer, and the hints
    answers.toml                right ones and wrong ones (`course/curriculum/specimens.py`)
    golden.txt                  what a check says of each wrong one

A folder is called `e`, the lesson, the number in it, and a word for people: `e07_1_subpartition` is exercise 7.1.
"""
