# %% [markdown] title name=title
# # Ten records end to end
#
# **When you are done** you can say what happens to a flight between a file and an answer, and one
# step of a running job will be code that you wrote.
#
# 30 minutes. You need a little Python. Nothing of Flink is assumed. The part that becomes yours: the
# map function, through which every record of the job goes.
#
# Run a cell with **Shift + Enter**. Nothing you type here can break anything: the lesson is a copy.
# %% setup name=setup
from course import check, hint, lesson, show, zoo

L = lesson(0)
L
# %% [markdown] why name=why
# ## An incident
#
# Monday, 8:40. The board says that 92 flights left New York in the last hour; the airport counts 61.
# Nothing crashed, nothing is red. The on-call engineer restarts the job, and the number is 92 again.
# At noon somebody finds a function of two lines that gives *two* values for some flights.
#
# Nobody could see it, because nobody could see the records travel. Here you can.
# %% [markdown] text name=meet
# ## The job
#
# Ten real flights, the first that left New York in 2013, go through six operators:
#
# | operator | what it does |
# |---|---|
# | `flights` | reads a file: a record for each departure, in the order they really left |
# | `timestamps` | takes the *scheduled* time as the time of the event |
# | `departure` | a **map**: from a flight to a pair (airport, minutes late) |
# | `flown` | a **filter**: leaves out what has no delay, because it never left |
# | `hourly` | counts, for each airport and hour |
# | `results` | a **sink**: takes the answers |
#
# Everything below is the engine running, not a drawing of it.
# %% figure name=map
from course.figures import run_flights
from widgets import PipelineMap

ten = run_flights(10)
PipelineMap(ten.recording, title="Ten flights, step by step")
# %% [markdown] text name=look
# Move the slider, or press the arrow keys with the picture in focus. Follow one thing: a square is a
# **buffer**, a piece of memory of 64 bytes. It leaves the pool of its producer, waits in a queue with
# records in it, and comes home empty.
#
# Two things to notice. Four operators share one task, with no queue between them: they call each
# other. And from `flown` to `hourly` there are queues, because records of one airport must meet in
# one place.
# %% predict name=predict-a
L.predict("0.a")
# %% figure name=counts
ten.counts
# %% [markdown] explain name=explain
# ## What a map promises
#
# | it is given | it gives back | it must not |
# |---|---|---|
# | one value | exactly one value | change the value it was given |
#
# One in, one out. To leave records out is a filter's work; to make several of one is a flat map's.
# The engine holds you to none of this. It sends on whatever the function returns, be it `None`, a list
# or a number, and the trouble shows up somewhere else: in a count, hours later.
#
# Why not change the value? Operators in one task hand each other the *same object*, because copying
# costs time. If a second branch reads that flight too, it sees your change.
#
# In Flink this is `MapFunction`, called by `StreamMap`; the hand-over is `ChainingOutput` (1.11.4).
# %% figure name=explain-chain
from course.flights_job import flights_job
from refimpl.task import IterableReader

print(flights_job(lambda subtask, of: IterableReader([]), print).explain())
# %% [markdown] text name=chain-words
# `explain` says, for each edge of the job, why it is a function call or a network. You will write that
# rule yourself in a later lesson.
# %% [markdown] task name=task
# ## Your part
#
# - **Given** a flight: a dict with `event_time_ms`, `origin`, `carrier`, `dest`, `dep_delay_minutes`.
# - **Give back** a pair: the origin, and how many minutes late it left.
# - A flight that left early counts as 0 minutes late.
# - **Not needed:** anything about streams, time or other flights.
# - **Done when** `check("0.1")` says so. It shows the first thing that is wrong, and why.
# %% exercise id=0.1
# %% check name=check
check("0.1")
# %% hint name=hint
hint("0.1")
# %% show name=show
show("0.1")
# %% [markdown] text name=swap-words
# ## Into the running job
#
# The next cell starts the job with *our* function, lets half of the flights through, and puts **yours**
# in while it runs. Then it counts. A swap that loses a record is no swap.
# %% swap name=swap
L.swap("0.1")
# %% zoo name=zoo
zoo("0.1")
# %% [markdown] text name=zoo-words
# Three parts that are wrong, each because of a belief that sounds right. For each: what would the
# on-call engineer see on the board, and when?
# %% [markdown] spark name=spark-words
# ## Is the answer right?
#
# A stream has no end, so nobody can wait for all of it and count. But these flights are a year that is
# over, and **Spark** can count them all at once, with another program, written by other people. If
# both agree on every hour of every airport, we believe it.
#
# Spark reads the flights, deals them out to two partitions, and answers the question by itself. The
# engine reads the same partitions, on threads this time.
# %% spark name=spark
from course.data import compare, departures_per_window, load, partitions
from course.data.optional import spark_or_none
from course.data.source import reader_of
from course.flights_job import to_rows
from refimpl.drivers import ThreadedRun

if spark := spark_or_none():
    flights = load(spark, records=5_000)
    with partitions(flights, 2) as parts:
        results = []
        ThreadedRun(flights_job(reader_of(parts), results.append)).run()
    by_airport = {}
    for _, origin, departures, _, _ in to_rows(results):
        by_airport[origin] = by_airport.get(origin, 0) + departures
    print("departures", dict(sorted(by_airport.items())))
    print("Spark and the engine:", compare(to_rows(results), departures_per_window(flights)).message())
# %% quiz name=quiz-1
L.quiz("0.q1")
# %% quiz name=quiz-2
L.quiz("0.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built the map of a running job. In Flink this is a `MapFunction`, and `StreamMap` calls it. It
# gives one value for one record and leaves the record alone. Records travel inside a task by function
# calls, and between tasks in buffers that wait in queues; every later lesson looks into one of these.
#
# To read: `refimpl/task/operators.py`, then `refimpl/task/task.py`. Next: lesson 3, how a record
# becomes bytes that fit no buffer.
# %% receipt name=receipt
L.receipt()
