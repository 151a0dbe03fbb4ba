# %% [markdown] title name=title
# # Backpressure
#
# **When you are done** you can say who holds a job back, and never blame one that is held back itself; and
# how others, from Storm to networks of telephone companies, make a source slow down.
#
# 75 minutes. You need pools (lesson 2), one slow reader (lesson 10) and credit (lesson 11). The parts that
# become yours: the rule that names the culprit, and the queue by which Storm stops its sources.
#
# Era: Flink 1.11. What 1.4, 1.10 and 1.13 do otherwise is said.
#! Begin with a supermarket: one slow till, a queue through the whole shop, and at the far end somebody with a trolley
#! who cannot get out of the dairy aisle. Who is slow? And whom would a camera see standing still? Keep both answers.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(12)
L
# %% [markdown] why name=why seeds=G1
# ## An incident
#
# On the day of the sale ten times as many orders came in. The page of the job was red at the source and at the
# parser, and the parser's input queue was full. So the parser got twice the memory, then four more subtasks.
# Nothing changed. At night somebody looked at the last task, which was green: it wrote to a table that had lost
# its index.
#
# Why was everything red but the culprit?
#! Do not solve it. Ask what would have happened without any backpressure: the queues grow until a machine is out of
#! memory, or records are thrown away. So red is good news: somebody waits instead of falling over.
# %% [markdown] text name=meet seeds=G2
# ## It travels by itself
#
# Between two tasks there is a queue with a bound: as many buffers as the pools allow. A full one makes its
# writer wait, and a task that waits does not read: so the next queue fills. That is all. Nobody in Flink
# measures anything to slow a source down.
#
# The table holds one end after the other: the producer at 60 % of its best, the consumer at 30 %, nobody, and
# again.
# %% figure name=follow seeds=G10,G11
from course.figures.jam import follow

follow(rounds=40)
#! Read the table by columns: whoever is held, both ends have the same speed, on one machine and on two, and the last
#! column is full speed again. A job is as fast as its slowest part.
# %% predict name=predict-a
L.predict("12.a")
#! "The fullest queue" and "most red" win. Ask both groups whom they would give more memory, and write it down.
# %% figure name=strip seeds=G9,G15
import IPython.display

from course.figures.pressure import RACE_PHASES, balance, heat_strip, jammed_job, monitored, who_stores
from widgets import JobView

# A job whose sink became slow, to step through; what Flink's page said of it; and all phases of the job.
IPython.display.display(JobView(jammed_job(), title="The sink is slow", at=8))
print(monitored(), "\n")
heat_strip()
#! Step first, and see the waiting move to the left. Then cover the list of phases below the strip, and let them say
#! who is slow in each phase. They find the edge between what is held back and what is not by eye. Then phase 3: the
#! parser is held back by ONE of its two readers.
# %% [markdown] explain name=explain seeds=G14,G15,C14
# ## Where it ends is who it is
#
# A subtask works (**busy**), has nothing to read (**idle**), or waits for a buffer to write into (**held
# back**). Who is held back is a victim: it waits for somebody further down.
#
# | held back for | Flink's page says |
# |---|---|
# | up to 0.10 of its time, 0.10 too | OK |
# | up to 0.5, 0.5 too | LOW |
# | more | HIGH |
#
# How Flink knows:
#
# | version | a task is held back if |
# |---|---|
# | up to 1.9 | its stack, the list of calls it is in, shows `LocalBufferPool.requestBuffer…Blocking` |
# | 1.10 to 1.12 | one of its outputs has no buffer |
# | since 1.13 | it counts the time itself |
#
# Up to 1.12 that is asked only when somebody opens the page, as it costs something: 100 samples, 50 ms apart, so
# five seconds at least, and again after a minute (`BackPressureStatsTrackerImpl`, 1.11.4). Why not look at
# queues, as Storm does? Here a full queue is everyday life, before the culprit and before each victim.
#
# Under pressure the output flusher (lesson 7) is without effect: buffers fill by themselves, and wait.
# %% [markdown] task name=task-bottleneck
# ## First part: who is it?
#
# - **Given** what each subtask did with its time, and who sends to whom.
# - **Do** `find_bottleneck`: the culprit, or the exchange where it is stuck, or nobody.
# - **Done when** `check("12.1")` says so. About nine lines; `hint("12.1")` helps.
# - **Start** with the exchanges that lead from somebody held back (not OK) to somebody who is not. None: `None`. At
#   their ends stand all suspects. The busiest is it, if busy for 0.5 of its time or more; of two alike, the lesser
#   place. If none is that busy, the data is stuck in one of these exchanges: where the producer is held back most;
#   of several alike, where the consumer is idle most.
# %% exercise id=12.1
#! The two that come: the most red, and the longest queue. Let them run and read the table in the message aloud, row by
#! row: would anything be faster if this one were? Who is done early: why is the busiest of ALL no answer?
# %% check name=check-bottleneck
check("12.1")
# %% swap name=swap-bottleneck
L.swap("12.1")
# %% zoo name=zoo-bottleneck
zoo("12.1")
# %% [markdown] text name=others seeds=J1,J2,J3,J4,J5,J6
# ## How others slow a source down
#
# | | who notices | what happens |
# |---|---|---|
# | Storm 1.0.3 | a queue is at its high mark | a flag in ZooKeeper, a store all workers watch: **every** source stops |
# | JStorm 2.1 | a queue was high at 3 of 4 looks | a master (`TopologyMaster`) makes sources sleep, longer and longer |
# | Spark 2.4 Streaming | a batch, the records of a second, took long | `PIDRateEstimator` sets a rate for the next |
# | ATM networks | a receiver counts what it forwards | credits, as in Flink |
# | Flink 1.5 and later | nobody | no buffer, no record |
#
# One load for all: two branches; the sink of the first falls to 30 % after ten seconds, for forty.
# %% predict name=predict-b
L.predict("12.b")
# %% figure name=race seeds=J1,J2,J3,J4,J5,J6
from course.figures.race import race
from widgets import RaceView

RaceView(race(["storm", "jstorm", "spark", "atm-link", "sluice-credit"], phases=RACE_PHASES), at=30)
#! Find Storm's innocent branch: it stops when the other one does. Then Spark's number inside: batches that wait have no
#! bound. Ask which of the five a reader of the page could find broken, and which only looks like it.
# %% [markdown] text name=atm-words seeds=H8,H15,H16,H17,H18,H19
# ## The oldest of them
#
# Telephone companies had credits before (Kung, Blackwell, Chapman, *Credit-based flow control for ATM
# networks*, 1994; Kung in *Traffic Management for High-Speed Networks*, nap.edu/read/5769). They send
# **cells**, small packets. Balance = all credit given − (sent − forwarded).
#
# Below, one way through the network by numbers; and the last of three nodes stops. **Link by link**, each hop has
# credits of its own, and every node stores a share. **End to end** has one loop: only the last node's memory
# helps, and it must be as large as the whole way is long.
#
# Who deals out the credit? With several senders only the receiver can: none of them knows how fast the others
# are. So Flink's credit class at the *receiver* is `CreditBasedPartitionRequestClientHandler`; no credit server
# is at the sender. A channel is fine while announced credit and unannounced together are at least its backlog;
# else it is held back.
# %% figure name=atm seeds=H16,H18
print(balance(5, "send 3", "credit 1", "send 3", "credit 4"), "\n")
who_stores()
# %% [markdown] task name=task-storm
# ## Second part: Storm's stop and go
#
# - **Given** a queue of Storm (`DisruptorQueue`), which is told of each record that comes.
# - **Do** `looked` and `consume`: when does it throttle, when does that end, who is told?
# - **Done when** `check("12.2")` says so. About ten lines.
# - **Mind** what happens between the marks. That a state depends on where one came from is called
#   **hysteresis**; without it each record would be a write to ZooKeeper: `zoo("12.2", show="w01")`.
# %% exercise id=12.2
#! Lesson 10's marks again, with other signs at the marks, and a trap: the number given to looked() may be old. A queue
#! that throttles and is empty waits for ever: STORM-1949. Storm's cure was to look again every 30 seconds.
# %% check name=check-storm
check("12.2")
# %% swap name=swap-storm
L.swap("12.2")
# %% [markdown] task name=task-rule
# ## Write the rule
#
# Write the program that turns wrong bottleneck finders down, as our grader does.
#
# - **Given** `find(loads, exchanges)`, which asks one about a job: names, plain numbers, pairs of names.
# - **Do** return `True` for a finder that is right and `False` for one that is wrong.
# - **Done when** your rule turns down two of three wrong ones you have never seen, and spares two right ones. About
#   ten lines; `L.swap("12.3")` puts it at the gate of the job.
# - **Start** with three in a row, two of them victims.
# %% exercise id=12.3
#! Each belief needs one job that shows it: two victims, two readers, a slow wire, peace, a queue that lies. Who has all
#! five in a table of (job, answer) has written a grader.
# %% check name=check-rule
check("12.3")
# %% [markdown] spark name=spark-words
# ## Hours of samples
#
# Four hours of samples, one a second from each of twenty subtasks: 300 000. In each minute another task is too slow,
# or none. **Spark** looks one task up in the line with a window function (`lag`); then the engine's rule is
# asked about each minute.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    SECTIONS[12].frame(spark).createOrReplaceTempView("metrics")
    found = spark.sql("""
        WITH minutes AS (
            SELECT time_ms div 60000 AS minute, operator,
                   avg(busy_permille) AS busy, avg(backpressured_permille) AS held,
                   array_position(array('source', 'parse', 'enrich', 'window', 'sink'), operator) AS place
            FROM metrics GROUP BY ALL),
        above AS (
            SELECT *, lag(held) OVER (PARTITION BY minute ORDER BY place) AS held_above FROM minutes)
        SELECT operator, count(*) FROM above
        WHERE held_above > 100 AND held <= 100 AND busy >= 500 GROUP BY operator""")
    prediction = {f"minutes of {operator}": number for operator, number in found.collect()}
    num_minutes = spark.sql("SELECT count(DISTINCT time_ms div 60000) FROM metrics").first()[0]
    prediction["minutes of nobody"] = num_minutes - sum(prediction.values())
    print(SECTIONS[12].run(spark, prediction=prediction))
#! Take `held <= 100` out of the query and run it again: the victims are counted too. One condition is the lesson.
# %% quiz name=quiz-1
L.quiz("12.q1")
# %% quiz name=quiz-2
L.quiz("12.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built the rule that names the culprit; in Flink 1.11.4 `JobVertexBackPressureHandler` gives the levels, and
# finding it is left to you. It is the first one that is *not* held back. And you built Storm's stop and go, which needs
# a store, a flag and two marks for what bounded queues do by themselves.
#
# To read: `refimpl/cluster/bottleneck.py`, `refimpl/cluster/back_pressure.py`, then `refimpl/rivals`. Outside:
# STORM-886 and STORM-1949.
#! Back to the incident: which two numbers of the last task would have said it at noon? Busy 100 %, held back 0 %.
# %% receipt name=receipt
L.receipt()
