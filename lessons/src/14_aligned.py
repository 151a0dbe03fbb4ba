# %% [markdown] title name=title
# # Aligned checkpoints
#
# **When you are done** you can say how a job that never stands still is photographed, why some channels wait
# for others meanwhile, and what a crash costs where they do not.
#
# 75 minutes. You need lesson 0, channels (lesson 7) and credits (lesson 11). The part that becomes yours: the
# one in every task that says where the task is cut.
#
# Era: Flink 1.11. What 2.x does differently is said where it matters.
#! Ask: how would you photograph a river, so that no drop is missing and none is on the picture twice? Somebody will
#! stop the river. That is the first answer (stop the job), and it works; the lesson is about not stopping.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(14)
L
# %% [markdown] why name=why
# ## An incident
#
# Three jobs counted the same 600 flights, with the same code. At night a machine died. All three were back
# within seconds, went on from what they had saved before, and came to their end.
#
# In the morning one had 595 flights, one 607, and one 600. No job had failed, and no log said anything.
#! Let them bet which number is the worst. 595 is lost for good, 607 can at least be seen by whoever removes duplicates.
#! Ask what two things a job must know to go on: what it had counted, and which records those were.
# %% [markdown] text name=meet seeds=I2
# ## Where were we?
#
# What a task remembers from one record to the next is its **state**: here, how many flights left each airport.
# A **checkpoint** is a copy of the state of all tasks, in a safe place, together with how far each source had
# read. After a failure all tasks begin again with their copies, and the sources send once more what came after.
#
# That is right only if the copies belong together: of each record either *all* of its effects are in the
# checkpoint, or none. Tasks cannot all stop at one moment, and have no clock in common. So the sources send a
# mark. Below, two of them on their way to one task. Step through it, and watch the lane on top.
# %% figure name=race seeds=I1
from course.figures.cuts import after_a_crash, barriers_behind, crash_recorded, race_of_barriers, told_to_the_aligner
from widgets import AlignmentView, CheckpointView

AlignmentView(race_of_barriers(), title="Two airports; airport-1, LaGuardia's, is slow", at=35)
#! Do not say "alignment" yet. Ask what the hatched buffers wait for, and who waits with them: the producer's queue
#! fills, and JFK's source will stand still. For nothing that is JFK's fault.
# %% [markdown] text name=look seeds=I1
# The mark is a **barrier**. It carries the number of a checkpoint, travels in the channels between the records,
# and overtakes none of them: what came before it belongs to the checkpoint, what comes behind it does not.
#
# A task that reads two channels gets it twice. Between the first and the second time it has one channel that is
# already behind the barrier, and one that is still before it.
# %% predict name=predict-a
L.predict("14.a")
#! Make them say what happens to ONE record that is behind the barrier on the fast channel, through a crash. In a: it is
#! not counted twice, but a record before the barrier on the slow channel is lost. In b: this very record counts twice.
# %% figure name=crash seeds=I2
after_a_crash()
#! The three jobs of the incident, run just now. The crash comes at the same step in all three. Let them assign the
#! three answers of the prediction to the three lines, before you do.
# %% [markdown] explain name=explain seeds=I1,E23
# ## The cut
#
# | the task saves its state | meanwhile, who has the barrier | after a failure |
# |---|---|---|
# | at the first barrier | reads on | records of slow channels are lost |
# | at the last barrier | reads on | records of fast channels count twice: **at least once** |
# | at the last barrier | waits | each counts once: **exactly once** |
#
# To let channels wait until all have the barrier is **alignment**. In Flink 1.11.4 `CheckpointBarrierAligner`
# does it, and `CheckpointBarrierTracker` lets them read on. In 2.x it is `SingleCheckpointBarrierHandler`.
#
# Nothing is kept aside while a channel waits. Since 1.11 its *producer* stops behind the barrier, and goes on
# when it is told to (`ResumeConsumption`). Before, the receiver took what came and kept it (`BarrierBuffer`).
#
# At the last barrier nothing more is read until the state is copied, and the barrier has gone out on all outputs,
# behind what the task made of the records before it. So one cut becomes the next task's. The idea is of 1985
# (Chandy and Lamport), its form for dataflows of 2015 (Carbone and others, *Lightweight Asynchronous Snapshots*).
#
# "Once" is about state. What has left the job, such as a line that was printed, leaves again after a failure,
# unless the sink takes part (lesson 17).
#! "Exactly once" does not say that a record is processed once: after the crash many are processed again. It says that
#! what is restored holds the effect of each once. Have somebody say it in their own words.
# %% [markdown] text name=wrong-words
# ## When it does not come
#
# A barrier may never come on some channel. A task upstream has given the checkpoint up and sends a
# **cancellation** in its place; a source has ended; or one was left out, and the next to come is a *newer*
# barrier. Whoever goes on waiting waits for ever.
# %% predict name=predict-b
L.predict("14.b")
# %% figure name=told
told = "0 barrier 1, 2 barrier 1, 1 barrier 2, 0 barrier 2, 2 barrier 2, 1 cancels 3, 0 barrier 3, 2 ends"
told_to_the_aligner(*told.split(", "), "1 barrier 4", "0 barrier 4", "1 barrier 5", "0 cancels 5")
#! Cover the last two columns. The traps: "0 barrier 3", which nobody waits for any more and whose channel stands all
#! the same; and "0 barrier 4", complete with two of three, since the third has ended.
# %% [markdown] task name=task-aligner
# ## Your part: the aligner
#
# - **Given** what the channels of one task bring: barriers, cancellations, ends. Who delivers a barrier has stopped.
# - **Do** the three methods, as the docstring says. Each gives a list of what is to be done.
# - **Not needed:** to stop a channel, to save state, to send barriers on. That follows from your list.
# - **Done when** `check("14.1")` says so. About twenty-five lines.
# - **Start** with one checkpoint that all deliver; then the next; then a newer one that comes too early.
# %% exercise id=14.1
#! Who is stuck writes down three things after each line of the table above: the latest number, whether it is waited
#! for, who has stopped. Nearly every mistake is a channel that is in nobody's set and stands still: it has no owner.
# %% check name=check-aligner
check("14.1")
# %% hint name=hint
hint("14.1")
# %% swap name=swap-aligner
L.swap("14.1")
#! Two jobs: one in which their part comes in while records go by, and one that crashes, as in the incident. With the
#! first of the zoo the last line says 595, with the second 607, and the line above it is the same in all cases.
# %% zoo name=zoo-aligner
zoo("14.1")
#! For each: what does on-call see? Two families. One loses or doubles records, and nobody sees anything. The other
#! leaves a channel blocked, and the job is silent: no exception, no load. Ask which of the two they would rather have.
# %% [markdown] text name=credit-words seeds=H11
# ## What it costs
#
# While a channel waits its producer waits. So alignment takes as long as the *slowest* barrier needs, and that
# one stands in line behind data. The less is under way, the shorter the line. Below, four readers, each a
# channel of the same connection; the first takes a buffer in one of eight rounds. All is full when the
# barrier is sent.
# %% figure name=credit seeds=H11
barriers_behind()
#! Ask why readers 1 to 3 need 105 rounds without credits: they are not slow. The barrier stands behind the slow one's
#! data in the same connection (lesson 10). What is left with credits is what each reader has room for: lesson 11.
# %% [markdown] text name=whole-words seeds=I2
# With credits (lesson 11) the barriers of the three others do not wait for the slow one. Its own is through
# sooner as well, but not by much: that line is made of buffers that it asked for.
#
# Somebody must begin all this and know when it is done: the **coordinator**, in Flink 1.11.4
# `CheckpointCoordinator`. It triggers the sources, each task acknowledges with its copy, and when *all* have,
# the checkpoint is complete, and the job can go on from there. One task that does not answer, and it never is.
# Here are the checkpoints of the third job, the one that came to 600.
# %% figure name=whole seeds=I2
CheckpointView(crash_recorded(), title="Checkpoints, a crash, and on", at=-1)
#! Find the flag: the job went on from there. Ask what became of the checkpoint that was under way at the crash. Then
#! ask how many records were processed twice (more than none), and why the answer is 600 all the same.
# %% [markdown] spark name=spark-words
# ## Is it so for other data?
#
# **Spark** counts the first 600 flights by airport, which is one query. The engine counts them in a job that is
# crashed and goes on. Below the table, what the same job comes to if nobody waits.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    SECTIONS[14].frame(spark).createOrReplaceTempView("flights")
    counted = spark.sql("SELECT origin, count(*) AS flights FROM flights GROUP BY origin ORDER BY origin")
    print(SECTIONS[14].run(spark, prediction={row.origin: row.flights for row in counted.collect()}))
#! Change 600 to another number in course/data/sections.py, or the seed: exactly once stays exact. At least once is
#! mostly exact too, and sometimes not: that is why tests do not find it.
# %% quiz name=quiz-1
L.quiz("14.q1")
# %% quiz name=quiz-2
L.quiz("14.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built what cuts a task in two. In Flink 1.11.4 it is `CheckpointBarrierAligner`. A barrier overtakes
# nothing, who has it waits, and who waits is let go on by somebody: when the last one comes, or when it is
# sure that it will not.
#
# To read: `refimpl/consumer/alignment.py`, with `BarrierTracker` beside your part, and
# `refimpl/task/checkpoints.py`, what a task does at its cut. Outside: Carbone and others, *State Management in
# Apache Flink* (2017).
#! Go back to the three numbers. Which setting makes 607? CheckpointingMode.AT_LEAST_ONCE: somebody wanted less waiting.
#! And 595? No setting; a bug like the first in the zoo. Next: lesson 15, where barriers do overtake.
# %% receipt name=receipt
L.receipt()
