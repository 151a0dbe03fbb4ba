"""The engine compiled by mypyc: the same package in a second place, for processes that ask for it.

`recipe` says what is compiled, `prepare` how the copy differs from the source, `build` makes it, `standing` says
whether what is there belongs to this source, and `choice` is the one place where a process takes one or the other.

Lessons, notebooks, checks, the simulation and the stepper always run the source. Nothing needs the compiled engine.
"""
