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
#! Before anything: everybody runs the first cell and holds up a hand when it prints. Half of all workshops lose their
#! first half hour here. Whoever sees an error runs `sluice doctor` and sits beside somebody whose cell works.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(0)
L
# %% [markdown] why name=why
# ## An incident
#
# Monday, 8:40. The board says how late flights leave, on average. On Friday it was right; today every
# number is too high. Nothing crashed, nothing is red, and nobody has touched the board's code. The on-call
# engineer restarts the job, and the numbers stay. At noon somebody finds a function of two lines, in
# *another* branch of the same job, added on Friday evening. "But it has nothing to do with the board!"
#
# Nobody could see it, because nobody could see the records travel. Here you can.
#! Ask who has been paged for a wrong number, as against a crash. Ask how long it took to find. Do not explain the
#! incident now; the second prediction solves it, and somebody in the room will shout before you do.
# %% [markdown] text name=meet
# ## The job
#
# A **job** is a program that never waits for the end of its data: it takes **records**, one by one, and
# hands on what it makes of them. In this one ten real flights, the first that left New York in 2013, go
# through six **operators**:
#
# | operator | what it does |
# |---|---|
# | `flights` | a **source**: reads a record for each departure, in the order they really left |
# | `timestamps` | takes the *scheduled* time as the time of the event |
# | `departure` | a **map**: from a flight to a pair (airport, minutes late) |
# | `flown` | a **filter**: leaves out what has no delay, because it never left |
# | `hourly` | counts, for each airport and hour |
# | `results` | a **sink**: takes the answers |
#
# Everything below is the engine running, not a drawing of it.
# %% figure name=map
from course.figures.flights import run_flights
from widgets import PipelineMap

ten = run_flights(10)
PipelineMap(ten.recording, title="Ten flights, step by step")
#! Say nothing for a minute; let them press the arrow keys. Then ask what moved. Someone says "squares": good. Only
#! now give the names: buffer, queue, pool. What is named after it was seen is remembered; the other way round it is
#! not. People ask about watermark and backlog: each has a lesson of its own, and today they may be ignored.
# %% [markdown] text name=look seeds=A4,B16
# Move the slider, or press the arrow keys with the picture in focus. Follow one thing: a square is a
# **buffer**, a piece of memory of 64 bytes. It leaves the pool of its producer, waits in a queue with
# records in it, and comes home empty. What you cannot name yet has a lesson of its own.
#
# Three things to notice. Each **task** runs twice, as **subtasks** -0 and -1, which share the work. Four
# operators share one task, with no queue between them: they call each other. And from `flown` to `hourly`
# there are queues, because records of one airport must meet in one place.
# %% [markdown] text name=live-words
# That was a recording. Here is the same job with flights without end, and it **runs while you look**: slow
# `hourly` with the slider, more and more. Its queues fill; then the tasks before it stand still, which nobody
# slowed. (Where there is no kernel you see one moment of it.)
# %% figure name=live
from course.figures.live import live_flights

live_flights()
#! Let everybody stop the job with the slider and get it going again. Who asks "but why do the *sources* stop?" has
#! asked the question of lessons 2, 7 and 10; write it on the board and leave it there.
# %% predict name=predict-a
L.predict("0.a")
# %% figure name=counts seeds=O7
ten.counts
#! Point at the 6 behind `hourly`. Ask why not ten, and why not three, one for each airport. It takes them a minute to
#! say "airport and hour", and then they have understood a window without the word.
# %% predict name=predict-b
L.predict("0.b")
# %% figure name=branches
from course.figures.flights import delays_beside


def never_early(flight):
    flight["dep_delay_minutes"] = max(0, flight["dep_delay_minutes"])
    return flight


for reuse in (False, True):
    delays = delays_beside(never_early, object_reuse=reuse)
    print(f"object_reuse={reuse!s:<5}  the second branch reads {delays}, together {sum(delays)} minutes")
#! This is the incident. Ask who would have looked into the other branch. From practice: the switch is turned on to
#! make a job faster, months after the function was written, by somebody who has never seen it. Both were right on
#! their day.
# %% [markdown] explain name=explain
# ## What a map promises
#
# | it is given | it gives back | it must not |
# |---|---|---|
# | one value | exactly one value | change the value it was given |
#
# One in, one out. To leave records out is a filter's work; to make several of one is a flat map's.
# The engine holds you to none of this. It sends on whatever the function returns, be it `None`, a list
# or a number, and the trouble shows up somewhere else: in a sum, hours later.
#
# Why must it not change the value? With **object reuse** the operators of a task hand each other the
# *same object*, because copying costs time. Our job of flights runs so. Without it, and that is Flink's
# default, each gets a copy. A map that leaves its flight alone is right in both.
#
# In Flink this is `MapFunction`, called by `StreamMap`. What hands on is `CopyingChainingOutput`, and with
# object reuse `ChainingOutput` (1.11.4; the same in 2.x).
#! What people get wrong here: they read "must not" as "cannot". Nothing stops them, in Flink as in ours. Ask for a
#! function they wrote at work that sorted or trimmed its argument in place; there is always one.
# %% figure name=explain-chain seeds=E2
from course.data.flights_job import flights_job
from refimpl.task import IterableReader

print(flights_job(lambda subtask, of: IterableReader([]), print).explain())
# %% [markdown] text name=chain-words
# `explain` says, for each edge of the job, why it is a function call or a queue. `chained` means: they
# call each other. You will write that rule yourself in a later lesson.
# %% [markdown] task name=task
# ## Your part
#
# - **Given** a flight: a dict with `event_time_ms`, `origin`, `carrier`, `dest`, `dep_delay_minutes`.
# - **Give back** a pair: the origin, and how many minutes late it left.
# - A flight that left early counts as 0 minutes late.
# - **Not needed:** anything about streams, time or other flights.
# - **Done when** `check("0.1")` says so. It shows the first thing that is wrong, and why.
#
# In every exercise the **value** counts, not its class. numpy's whole numbers are whole numbers while twice the
# number still fits: an `np.int32` that would overflow is none. A bytearray or a memoryview is as good as bytes, a
# tuple or an iterator as a list. A truth value or a float is no whole number, and a text is no bytes. Only here it
# must be a tuple of a text and an `int`, because the type of a record decides how it is written.
#! The exercise is one line, on purpose: today they learn the way, not the function. Ask two volunteers to be wrong
#! first, one to return a list and one to change the flight, so that everybody has seen a failing check before their
#! own fails.
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
#! Stop here until everybody has seen their own name in "your part". It is the moment the course is made of: code
#! typed a minute ago runs inside an engine that did not stop. Ask what the count before and after the swap must add
#! up to.
# %% zoo name=zoo
zoo("0.1")
# %% [markdown] text name=zoo-words
# Three parts that are wrong, each because of a belief that sounds right. For each: what would the
# on-call engineer see on the board, and when?
# %% [markdown] spark name=spark-words
# ## Is the answer right?
#
# A stream has no end, so nobody can wait for all of it and count. But these flights are a year that is
# over, and **Spark**, a program for data that is all there, can count them at once. It was written by other
# people, in another way. If both agree, we believe it.
#
# First Spark says how many flights left each airport. Then it says so for each hour, with the sum and the
# average of the delays; and the engine runs the job of this lesson, on threads this time, on the same five
# thousand. A difference in one hour of one airport would be shown.
# %% spark name=spark
from course.data import compare, partitions
from course.data.flights_job import to_rows
from course.data.optional import spark_or_none
from course.data.oracle import Departures
from course.data.sections import SECTIONS
from course.data.source import reader_of
from refimpl.drivers import ThreadedRun

if spark := spark_or_none():
    flights = SECTIONS[0].frame(spark)
    flights.createOrReplaceTempView("flights")
    counts = spark.sql("SELECT origin, count(*) FROM flights GROUP BY origin").collect()
    hours = spark.sql("""
        SELECT event_time_ms - event_time_ms % 3600000 AS hour, origin,
               count(*), sum(dep_delay_minutes), avg(dep_delay_minutes)
        FROM flights GROUP BY hour, origin""").collect()
    print(SECTIONS[0].run(spark, prediction=dict(counts)))
    with partitions(flights, 2) as parts:
        results = []
        ThreadedRun(flights_job(reader_of(parts), results.append)).run()
    print("hour by hour:", compare(to_rows(results), [Departures(*row) for row in hours]).message())
#! Ask what "equal" is worth here. Two programs, two languages, two groups of people: the same bug in both is
#! unlikely. Then ask why one could not just compare the engine with itself; somebody will remember a test that did
#! exactly that.
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
# To read: `refimpl/task/operators.py`, then `refimpl/task/task.py`. Next: the
# memory that a buffer is made of.
# %% receipt name=receipt
L.receipt()
