# %% [markdown] title name=title
# # One bad day
#
# **When you are done** you can read the story of a job that failed again and again, say from where it went on
# each time, and why its results are right all the same.
#
# 90 minutes. You need event time (lesson 13) and aligned checkpoints (lesson 14). The parts that become yours:
# the windows of a job, and the sink that decides when a result counts.
#
# Era: Flink 1.11. What 2.x does differently is said where it matters.
#! This is the last stop before a real Flink: everything so far, together, on a day on which much breaks. Ask who has
#! been on call, and what they looked at first. Keep the answers: the timeline below has most of them.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(17)
L
# %% [markdown] why name=why
# ## An incident
#
# A job counts the flights of each airport, hour by hour. In one night a machine died, a cable was cut, and the
# store of its checkpoints failed twice. In the morning the job was running, and the dashboard was green.
#
# One team read the results from the log: 46 lines. Another read the files: 39 lines. Who is right?
#! Let them bet. The log was written by the same job, from the same results; 7 hours stand in it twice. Do not explain
#! yet. Ask only what the 7 hours have in common: they were written shortly before something died.
# %% [markdown] text name=meet seeds=I2
# ## A day made of chance
#
# You cannot wait for a bad day, so make one. A **seed**, one number, draws what goes wrong and when. The same
# seed gives the same day on every machine, so whatever you find can be looked at again. To test like this is
# called **chaos testing**; a simulation makes it repeatable. Here is a day of two TaskManagers and 600 flights:
# two sources, and two tasks that count. Everything is real but the clock.
# %% figure name=troubles
from course.figures.bad_day import bad_day_recorded, both_days, incident_timeline, told_to_the_sink, troubles_ahead
from widgets import TimelineView

troubles_ahead()
#! Ask for each of the four: does the job fail of it? Only two of them end it, the machine and the connection. A store
#! that fails costs a checkpoint, and the job runs on: Flink counts such failures (tolerable-failed-checkpoints).
# %% predict name=predict-a
L.predict("17.a")
#! Who says "checkpoint 3": ask which tasks have saved their part of it, and what the others would begin with. Who says
#! "only the tasks of the machine": ask what its neighbours have counted since, from records that now come again.
# %% figure name=timeline seeds=I2,K13
incident_timeline()
#! Read it aloud, line by line, as a story. Then: how many flights were read in all? 600, and 104, and 128 again. Ask
#! why no one asks on-call to repair a number.
# %% figure name=day seeds=I2
TimelineView(bad_day_recorded(), title="One bad day, two TaskManagers", at=-1)
#! Find the two restarts in the row of the checkpoints, then the two checkpoints that the store ate. Then move the
#! slider to the moment at which tm-1 is gone: which two tasks went with it, and what do the others do?
# %% [markdown] explain name=explain seeds=I2,K13
# ## What fell, and what was lost
#
# | what fell | what was lost | how the job went on |
# |---|---|---|
# | the store, for one write | the checkpoint it was for | it ran on; the next checkpoint was complete |
# | a TaskManager | all state in memory | *all* tasks from the newest complete checkpoint |
# | the answer of a write | that checkpoint: who asked cannot know | it ran on |
# | a connection | all state in memory | as above |
#
# No record is lost: a source reads again what came behind the checkpoint. None counts twice: what had been
# counted of these was lost with the state. Three things must go back *together*: where the sources are, what
# the tasks remember, and, as you will see, what has left the job.
#
# In Flink 1.11.4 `CheckpointCoordinator` chooses the checkpoint. `RestartPipelinedRegionFailoverStrategy` says
# which tasks begin again: here all, since all are connected.
#! A checkpoint whose write has no answer: the file may be there, whole. The coordinator gives it up all the same. That
#! is safe: an unused file is garbage. The other way round, a checkpoint that is believed and not there, is not.
# %% [markdown] text name=window-words seeds=I5,I8
# ## What it remembers: windows
#
# A **window** is a stretch of event time: 10:00 up to the last millisecond before 11:00. The operator keeps for
# each key and window an **accumulator**, a small value that each record changes. When the watermark (lesson 13)
# has reached the window's last millisecond, the window is *over*: its result goes out once, and its state is
# dropped. A record that comes for a window that is over is **late**, and goes to a side output.
#
# The clock on the wall decides nothing, nor does the order of arrival. So an hour that is read again, much later,
# holds the same flights as before. That makes a second result *equal*, not merely similar.
#
# What a snapshot returns is of its moment: a copy. A reference would go on changing while it is being stored.
#! Windows begin at multiples of their length since 1970, also before 1970: -1 ms lies in the window that ends at 0. Ask
#! why all subtasks must agree on that, and what would stand in the files if the first record began the first window.
# %% [markdown] task name=task-windows
# ## Your first part: the windows
#
# - **Given** records with key, number and event time; watermarks; an `output` with `emit` and `late`.
# - **Do** the methods, as the docstring says: count and sum for each key and window.
# - **After a crash** there may be states of several subtasks, with different keys. The watermark is in none of
#   them: time begins anew, and comes again with the records.
# - **Done when** `check("17.1")` says so. About twenty lines.
# %% exercise id=17.1
#! Who is stuck draws two keys and three windows as a table, and says which cells a watermark empties, and in which
#! order.
# %% check name=check-windows
check("17.1")
# %% swap name=swap-windows
L.swap("17.1")
#! The job crashes. Ask what of their part the checkpoint had, and what had to come from the sources again.
# %% zoo name=zoo-windows
zoo("17.1")
#! Two families again. Some give another answer whenever records arrive in another order; some only after a crash. Which
#! of them would a test find that never breaks anything?
# %% figure name=both seeds=I2
both_days()
#! The printed lines of the bad day: none is wrong, and 7 are there twice. Ask what would stand there if windows fired
#! by the clock on the wall: hours cut in two by the outage, and nobody could say which lines are the extra ones.
# %% [markdown] text name=sink-words seeds=I2
# ## What has left the job
#
# Nobody can take back a line that is printed. A sink with **two-phase commit** writes into a **transaction**: a
# file, say, that readers do not see yet.
#
# 1. At the barrier it **pre-commits** the open transaction, even an empty one: what is in it is durable now,
#    and still unseen. It waits (is *pending*) for this checkpoint. A new one is begun.
# 2. When the checkpoint is complete, it **commits** what waits for it or for an older one, oldest first.
#
# The news may get lost. So a checkpoint holds which transaction is open, and which wait. That copy must be a
# copy: if it changes when the sink goes on, it is of no moment at all.
# %% predict name=predict-b
L.predict("17.b")
#! Both wrong beliefs are common. "Lost": the process is dead, the file is not. "Written again": the source goes on
#! BEHIND the barrier, so nobody will write these lines again; to abort them is to lose them.
# %% figure name=told seeds=I2
told_to_the_sink("+ JFK", "+ LGA", "barrier 1", "+ EWR", "complete 1", "barrier 2", "+ JFK", "dies, on from 2", "+ JFK")
#! Cover the last column. The line of the crash has all three rules: what waits is committed, what was open is aborted,
#! and a new one is begun. JFK is written twice, into two transactions, of which one will be seen.
# %% [markdown] task name=task-sink
# ## Your second part: the sink
#
# - **Given** transactions with `begin`, `write`, `pre_commit`, `commit`, `abort`. To commit again does no harm.
# - **Do** the methods of the docstring. After a crash: commit what waits, in *all* states; abort what was open
#   (it may be `None`); begin one. On `close`: abort what is open, never what waits.
# - **If a commit fails,** the error goes out, and the transaction still waits.
# - **Done when** `check("17.2")` says so. About twenty-five lines.
#! The order of two lines in `complete` matters: forget a transaction after its commit has come back, not before.
# %% exercise id=17.2
# %% check name=check-sink
check("17.2")
# %% hint name=hint
hint("17.2")
# %% swap name=swap-sink
L.swap("17.2")
# %% zoo name=zoo-sink
zoo("17.2")
#! For each: lost, or twice, or left behind? And who notices? Nobody, until the numbers of two teams differ.
# %% [markdown] spark name=spark-words
# ## On Spark
#
# The engine can run inside Spark: a TaskManager in each task of a **barrier stage**, whose tasks start all
# together or not at all. If one dies, Spark starts the whole stage again, and drops what its first try gave.
# So the checkpoint also holds what sinks had got, and the second try goes on from the newest one
# (`refimpl/drivers/spark`). Another run in the same store does too: below the first is *ended* as soon as it
# has a checkpoint, the second goes on. Spark's batch query says what must come out.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    SECTIONS[17].frame(spark).createOrReplaceTempView("flights")
    counted = spark.sql("""
        SELECT origin, count(DISTINCT event_time_ms div 3600000) AS hours, count(*) AS flights,
               sum(dep_delay_minutes) AS minutes
        FROM flights WHERE dep_delay_minutes IS NOT NULL GROUP BY origin ORDER BY origin""").collect()
    names = ("hours", "flights", "minutes")
    predicted = {f"{row.origin}, {name}": row[name] for row in counted for name in names}
    print(SECTIONS[17].run(spark, prediction={**predicted, "goes on from a checkpoint": "yes"}))
#! On a cluster (SLUICE_SPARK_MASTER) the same section runs in executors. Kill one of them in mid-run: Spark tries the
#! stage again. Local Spark never tries a task twice, which is why the lesson ends the run by hand.
# %% quiz name=quiz-1
L.quiz("17.q1")
# %% quiz name=quiz-2
L.quiz("17.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built what a job remembers, `WindowOperator` in Flink 1.11.4, and what makes its results count once outside
# of it too, `TwoPhaseCommitSinkFunction`; in 2.x the two phases are `SinkWriter` and `Committer`. Sources go
# back, state goes back, and what has left the job waits until nobody can go back behind it.
#
# To read: `refimpl/task/two_phase_sink.py`, `refimpl/task/window_operator.py`, and `tests/chaos`, which plays
# hundreds of worse days. Outside: Carbone and others, *State Management in Apache Flink* (2017).
#! Back to the morning. The files were right, and the log was honest: it said twice what had happened twice. What does a
#! two-phase sink cost? Results come a checkpoint later. Who wants them at once must bear some of them twice.
# %% receipt name=receipt
L.receipt()
