# %% [markdown] title name=title
# # Unaligned checkpoints
#
# **When you are done** you can say how a checkpoint is taken of a job that is behind, what it has in it then,
# and what that costs.
#
# 75 minutes. You need channels (lesson 7), backpressure (lesson 12) and aligned checkpoints (lesson 14). The part
# that becomes yours: the one that says when a task is cut, and what of its channels is copied.
#
# Era: Flink 1.11. What 2.x does differently is said where it matters.
#! Ask for the one sentence of lesson 14: why does a barrier overtake nothing? Keep it on the board. Today it does.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(15)
L
# %% [markdown] why name=why
# ## An incident
#
# A job had a checkpoint a minute for months. One evening its database was slow, and so was the sink that wrote to
# it. Each checkpoint was given up after ten minutes: "it took too long". No task had failed. Towards morning a
# machine did, and the job went on from its last checkpoint: from the evening before.
#
# It now had a night of records to process again. That made it slower still, and its checkpoints too.
#! Let them see the circle: checkpoints fail when the job is behind, and a job with no checkpoints falls behind more.
#! Somebody will say "a longer timeout". Ask how long, then, and what is lost meanwhile.
# %% [markdown] text name=meet
# Below is a job like it, much smaller: two sources, and one task, the board, that takes a step
# where the others take three. A checkpoint may take two milliseconds. Step through it.
# %% figure name=expired
from course.figures.overtaking import (
    crash_recorded,
    given_up_recorded,
    race_recorded,
    told_to_the_unaligner,
    what_is_copied,
)
from widgets import AlignmentView, CheckpointView

CheckpointView(given_up_recorded(), title="A slow board, and two milliseconds for a checkpoint", at=-1)
#! Ask where the time is. The state is a few bytes. The barrier stands behind data at each source (lesson 14, quiz).
# %% [markdown] text name=look
# A **barrier** marks where a checkpoint cuts the stream. Here it stands behind all that the board has not read.
# What would happen if it went to the front of its queue? The task would be cut at once. But the records that the
# barrier has passed are then *behind* the cut of the source, which has sent them, and not in the state of the
# board, which has not read them.
# %% predict name=predict-a
L.predict("15.a")
#! Follow one record that was passed, through a crash: the source does not send it again. Who can?
# %% figure name=race seeds=I3
AlignmentView(race_recorded(True), title="The same job; its barriers overtake", at=44)
#! Step on by two: the barrier is taken, and the lane behind it is as full as before. Nobody waits; all of that is data
#! that belongs to the checkpoint. A few steps on the sources have hundreds of bytes of state: the copies.
# %% [markdown] explain name=explain seeds=I3,E23
# ## The cut, and what it passes
#
# A checkpoint whose barriers overtake is **unaligned** (Flink 1.11, FLIP-76; `execution.checkpointing.unaligned`).
#
# | | aligned | unaligned |
# |---|---|---|
# | a barrier in a queue | waits its turn | goes to the head |
# | a task is cut | at the last barrier | at the *first* |
# | meanwhile | channels wait | all are read |
# | in the checkpoint | state | state, and what was passed |
#
# What was passed is copied on both sides of a channel:
#
# - **Output.** The barrier goes before the buffers that wait in the producer's queue; copies of those are the
#   producer's to keep.
# - **Input.** At the first barrier the task copies what has come on each channel and is not processed, with the
#   record that it has half read; and then what *still comes* on a channel before that channel's own barrier. Behind it
#   nothing is copied.
#
# Only data is copied, no events. With the barrier of the last channel the task has all.
#
# In Flink 1.11.4 `CheckpointBarrierUnaligner` does it, with `ChannelStateWriter`; in 2.x
# `SingleCheckpointBarrierHandler`.
#! The three places where data can be: producer's queue, network and receiver's queue, half read. Each is somebody's.
# %% predict name=predict-b
L.predict("15.b")
# %% [markdown] text name=wrong-words
# ## When it does not come
#
# As in lesson 14 a barrier may never come on some channel. No channel waits for it here, but the copies would go on
# without end. So what is captured is given up, and whoever reads from this task is told (`Abort`):
#
# - a **newer** barrier comes on any channel: the older one will not come there any more, and the newer one is the cut
#   of its own checkpoint, at once;
# - a **cancellation** comes of the checkpoint that is captured. It may also be of one whose barriers are still to come:
#   that is remembered, and they begin nothing;
# - in 1.11 a channel **ends**, even one that has delivered its barrier: a checkpoint without the state of a task that
#   has ended could not be restored. The next checkpoints do not wait for that channel. Since 1.14 (FLIP-147) it can be
#   restored, and an end counts as the barrier;
# - **somebody else** gives it up, say the coordinator, as it takes too long. Then others are told by whoever did.
#
# A barrier of a checkpoint that is over, a *late* one, changes nothing. Below, what one task with three channels does.
# %% figure name=told seeds=I3
told = "0 barrier 1, 2 barrier 1, 1 barrier 1, 2 barrier 2, 0 barrier 3, 1 barrier 2, 1 cancels 3, 2 barrier 3"
told_to_the_unaligner(*told.split(", "), "0 barrier 4", "1 ends", "2 barrier 4", "0 barrier 5", "2 barrier 5")
#! Cover the two columns on the right. The traps: "1 barrier 2" after 3 has begun, which is late and says nothing of 3;
#! and "0 barrier 5" with "2 barrier 5", which have all, since the third has ended.
# %% [markdown] task name=task-unaligner
# ## Your part: the unaligner
#
# - **Given** what the channels of one task bring: barriers that have overtaken, cancellations, ends; and, in
#   `on_aborted`, what somebody else has given up.
# - **Do** the four methods, as the docstring says. Each gives a list of what is to be done: `StartCapture` with the
#   barrier at the cut, `Captured` with the number when the last channel has delivered, `Abort`.
# - **Not needed:** to copy bytes, to save state, to send barriers on. That follows from your list.
# - **Done when** `check("15.1")` says so. About thirty lines.
# - **Start** with one checkpoint that all deliver; then a newer one that comes too early.
# %% exercise id=15.1
#! Who is stuck keeps two things: the latest number, and who has delivered it, or that nothing is copied any more.
# %% check name=check-unaligner
check("15.1")
# %% hint name=hint
hint("15.1")
# %% swap name=swap-unaligner
L.swap("15.1")
#! Two jobs: one in which their part comes in while records go by, and one that crashes and goes on from its cuts and
#! copies. With the first two of the zoo that one comes to no end: halves of records are missing, or come twice.
# %% zoo name=zoo-unaligner
zoo("15.1")
#! For each: which records does a crash lose, and which come twice? And when would anybody see it?
# %% [markdown] text name=restore-words
# ## Back again
#
# After a crash what was copied is put back *before* anything new: in the queues of the outputs what was passed there,
# and in the inputs what was copied there, the half record first. Its other half comes out of the producer's copy, and
# together they are one record again. Below the job crashes and goes on. Find what the checkpoints say of barriers.
# %% figure name=crash seeds=I2,I3
CheckpointView(crash_recorded(), title="Barriers that overtake, a crash, and on", at=-1)
#! "barriers have overtaken" stands at each; the size is not that of the state. Compare with the first figure.
# %% [markdown] text name=price-words
# ## What it costs
#
# The checkpoint grows with what waits, so it is largest when the job is slowest; and it goes to the same disks. Most
# jobs are behind only now and then. So a barrier may wait first, and overtake when it has waited too long:
# `aligned-checkpoint-timeout` (its name since 1.14). Here are the same job's checkpoints by that wait.
# %% figure name=price seeds=I3
what_is_copied()
#! Why does "after 2 ms" copy less than "at once"? The board read on while the barrier waited. And why is its longest
#! not shorter than 2 ms? Ask what somebody should choose whose checkpoints take a second, and sometimes an hour.
# %% [markdown] text name=limits
# What stays aligned, and why: a **savepoint**, which people keep and change jobs with; and in Flink edges that go one
# to one (forward) or to all (broadcast). Only one unaligned checkpoint can be under way at a time. And it helps
# against *queues*: a task that is stuck in one record takes no barrier, from wherever it comes.
#! Ask which of the two helps: a slow database with full queues (yes), a record that takes an hour by itself (no).
# %% [markdown] spark name=spark-words
# ## Is it so for other data?
#
# **Spark** adds up how long 600 flight numbers are, with the six bytes that a short text has around it in a channel.
# The engine sends all of them to a board that stands still, lets a barrier overtake, and crashes.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    SECTIONS[15].frame(spark).createOrReplaceTempView("flights")
    size = "length(concat(carrier, cast(flight AS string))) + 6"
    waiting = spark.sql(f"SELECT origin, sum({size}) AS bytes FROM flights GROUP BY origin ORDER BY origin")
    print(SECTIONS[15].run(spark, prediction={row.origin: row.bytes for row in waiting.collect()}))
#! The six: a length of 4 bytes, the kind of element, and the number of letters (lesson 3). Nothing else is copied.
# %% quiz name=quiz-1
L.quiz("15.q1")
# %% quiz name=quiz-2
L.quiz("15.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built what cuts a task at its first barrier. In Flink 1.11.4 it is `CheckpointBarrierUnaligner`. Nobody waits;
# what was passed is copied, on both sides, and comes back before anything new.
#
# To read: `refimpl/consumer/unaligned.py`, with the one that waits first beside your part, and
# `refimpl/consumer/channel_capture.py`, what is copied of a channel. Outside: FLIP-76.
#! Back to the incident: with barriers that overtake there would have been a checkpoint a minute all night, only larger.
# %% receipt name=receipt
L.receipt()
