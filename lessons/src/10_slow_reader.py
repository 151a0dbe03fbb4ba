# %% [markdown] title name=title
# # One slow reader
#
# **When you are done** you can say why, before Flink 1.5, one task that stood still could stop every task that
# shared its connection, and what exactly happened on the way from the slow reader back to each source.
#
# 60 minutes. You need buffer pools (lesson 2) and connections shared by many channels (lesson 9). The parts
# that become yours: the rule that stops a sender, and the place where data waits that nobody has room for.
#
# Era: Flink up to 1.4 knew only this way; 1.5 to 1.9 could be switched back to it; 1.10 dropped it. The
# engine still can: `Config(credit_based=False)`.
#! Begin without a computer: a road with one lane, and the first car waits to turn left. Everybody behind it wants
#! to go straight on, and the road there is empty. Ask who is at fault, and what the police helicopter would report
#! as broken.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(10)
L
# %% [markdown] why name=why seeds=G1
# ## An incident
#
# One TaskManager ran two hundred small tasks. One of them wrote to a database, and the database was slow that
# night. The alarm did not name that task. It named forty others: no input for ten minutes, processors idle,
# queues at their senders full. Checkpoints failed everywhere. Somebody stopped the one job with the
# database, and all the others came back to life.
#
# They had nothing to do with it. They shared a connection.
#! Ask: you are on call, forty tasks without input, which one do you restart? Everybody picks one of the forty. From
#! practice: such teams wrote scripts that restarted the victims each night, and each restart "helped" for as long
#! as it took the queues to fill again.
# %% [markdown] text name=meet
# ## Four readers
#
# Four sources on one TaskManager, four sinks on another, one channel for each pair, one connection for all
# four. In each **round** every sink that is awake may take one step; in between, everything else moves as far
# as it can. So a reader gets at most one buffer a round. Here all four are awake:
# %% figure name=awake
from course.figures.jam import follow, jam, where_it_stands

jam(credit_based=False, phases=(False,))
# %% predict name=predict-a
L.predict("10.a")
#! "As much as before" wins, and the reason is good: four channels, four queues, four pools. So ask what there is
#! only ONE of. Write the vote down; you want it again at the cure.
# %% figure name=jam seeds=G6
jam(credit_based=False)
#! Point at 0.62 and let them work it out: 0.62 of 16 rounds are ten buffers. Why ten? The next table has the ten,
#! at channel 0, where they do not help. This delay is why the alarm never comes at the moment of the cause.
# %% [markdown] text name=look seeds=G6
# Reader 0 slept from round 17 to 48. For a while the others lived on what still came. Then they got nothing,
# though they had room, and their sources had data. When reader 0 woke up, all four went on: nothing was
# lost. Where was the data meanwhile?
# %% figure name=stands seeds=G5
where_it_stands(credit_based=False)
#! Cover all rows but the first. Then, row by row: in which one is memory really missing? In one place only, for one
#! buffer: the 1. Everything else in this table follows from it, and every other channel has ten empty buffers.
# %% figure name=live
# The same over a real connection, running while you look;
# without a kernel you see one moment of it.
# Slow sink-0, or hold it: who else gets nothing?
# After the cure, come back and run this cell again with credit_based=True.
from course.figures.live import live_readers

live_readers(credit_based=False)
#! Hold sink-0 and wait a few seconds: first the right side of the other three is empty, and only later, when the wire
#! is full, are the left sides full. That is the order in which the alarms come. Let it go: nothing was lost.
# %% [markdown] explain name=explain seeds=A16,G5,G7
# ## Nobody says "stop"
#
# Each part finds that it cannot go on, from the slow reader back to every source:
#
# | where | what it finds | what it does |
# |---|---|---|
# | the slow task's input, its **gate** | no buffer left, and data has come | **stages** the data: keeps it aside |
# | the connection | something is staged | is not read any more, for **no** channel |
# | both transports | nobody reads | fill up |
# | the sender | more than the **high mark** is unwritten | hands out nothing more |
# | the sources' pools | no buffer comes home | the sources wait |
#
# What stands behind channel 0's data has room where it goes, and does not get there: **head-of-line
# blocking**. The barriers of checkpoints stand in that line as well.
#
# The sender has two marks so that it is not woken for every few bytes: above the high one it stops, and it
# goes on only below the **low** one. Between them, it depends on where it came from.
#
# In Flink 1.4 to 1.9: `PartitionRequestClientHandler` stages and turns reading off (`setAutoRead(false)`);
# `NettyServer` sets the marks, until 1.10: low one buffer + 1 byte, high two buffers.
#! Read the table from below, as somebody on call would: the source waits; why? Ask for the next "why" until you are
#! at the database. Count how many of the five lines name the culprit: one, and it is on the other machine.
# %% [markdown] task name=task-marks
# ## First part: high and low water
#
# - **Given** two marks, and calls that say how many bytes were handed out or written.
# - **Do** `hand_out` and `written`: count, and set `is_writable`.
# - **Done when** `check("10.1")` says so. About six lines.
# - **Mind** what happens *between* the marks, and exactly at each.
# %% exercise id=10.1
#! Most write one comparison. Draw a line with both marks, walk up and down on it with a finger and stop at 15,
#! twice: same number, two answers. Who asks "which sign at the mark itself?" has read the docstring: above, below.
# %% check name=check-marks
check("10.1")
# %% swap name=swap-marks
L.swap("10.1")
# %% zoo name=zoo-marks
zoo("10.1")
# %% [markdown] task name=task-waits
# ## Second part: where data waits
#
# Data has come and needs a buffer of the gate's pool. If there is none, the data must not be dropped, and
# nobody may stand and wait inside a call: other tasks share this thread.
#
# - **Do** `request_buffer`: give a buffer, or a `BufferWait`, a place in the pool's line. The connection
#   keeps the data, stops reading, and asks again when that wait is over.
# - **Done when** `check("10.2")` says so. About nine lines.
# - **Start** with a pool that has a buffer; then with an empty one; then be asked a second time.
#   `L.hint("10.2")` helps, and `L.zoo("10.2")` shows what others believed.
# %% exercise id=10.2
#! Somebody writes a loop that waits for the buffer. Ask: which thread will recycle the buffer it waits for? Often
#! the same one. That is why the answer is a place in a line, an object, and not a call that blocks.
# %% check name=check-waits
check("10.2")
# %% swap name=swap-waits
L.swap("10.2", driver="threads")
# %% [markdown] text name=cure-words seeds=G13,H2,H6
# ## The cure
#
# Think of a river with a dam at each end of the way: full behind the lower one, it must overflow somewhere, unless
# the sluice of the upper one is opened only as far as there is room below. The mistake is to send what nobody has
# room for. If the sender knew, it would keep channel 0's data at home, and the line would stay free. That is what
# credits do, since 1.5; the next lesson builds them. Same job, same sleep. In the second table nothing is on the wire
# without a place, and the innocent readers have buffers lying ready. (All sources wait now and then: they could send
# more than a reader takes.)
# %% figure name=cure seeds=H6
print(jam(credit_based=True), "\n")
where_it_stands(credit_based=True)
#! Somebody says "just give it more buffers". Ask what changes in the jam with twice as many: the 0.62, and nothing
#! after it. More memory moves the moment; it does not remove the line. Then take the vote of the first prediction
#! again.
# %% predict name=predict-b
L.predict("10.b")
# %% figure name=follow seeds=G10,G11
follow()
#! A famous figure, here from our own engine. Ask where in the code the speed is sent: nowhere. Only two things
#! travel, data one way and empty buffers the other. Then the first column: who waits there, and for what? The
#! consumer, for data; only from the second on the producer waits, for buffers. What fills first is left out.
# %% [markdown] text name=two-kinds seeds=E5,E27,G3,G4,G8,G9,G12
# A slow producer has its consumer wait for data. From the second phase on it is the other way round, and this is
# **backpressure**: the producer follows its consumer, and no message says how fast. There are two kinds. On one
# machine the consumer holds the producer's own buffers, so its pool runs empty. Between two machines the
# consumer's buffers fill first, then the way between, then the sender's queue; and then its pool runs empty as
# well. The end is always the same: a task asks for a buffer, and there is none.
#
# In between, a sender asks before each buffer whether it may write (`isWritable`), and is called when it may again
# (`channelWritabilityChanged`). And a gate, which puts all channels of a task's input together, knows which of them
# have something, data or events; there the task waits. From 1.5 to 1.9 the way back to no credits was
# `taskmanager.network.credit-model: false`.
# %% [markdown] spark name=spark-words
# ## How much is left for the innocent?
#
# A reader that is only *slow* is enough. **Spark** deals rows out to two channels, as they come, and from two
# counts we predict what is left of the innocent one's throughput when the other is 1, 2, 4, 8 times slower.
# In one line both move at the slow one's pace; with credits nothing changes. Then the engine measures.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

DEAL_OUT = """
    SELECT count_if(id % 2 = 0) AS slow, count_if(id % 2 = 1) AS innocent
    FROM {rows}
"""
if spark := spark_or_none():
    rows = spark.sql(DEAL_OUT, rows=SECTIONS[10].frame(spark)).first()
    print(f"{rows.slow} rows for the slow reader, {rows.innocent} for the innocent one", "\n")
    prediction = {}
    for times in (1, 2, 4, 8):  # while n slow rows pass, in n × times rounds, the innocent ones between them do
        prediction[f"{times} times slower, one line"] = round(min(1.0, rows.innocent / rows.slow / times), 3)
        prediction[f"{times} times slower, credits"] = 1.0
    print(SECTIONS[10].run(spark, prediction=prediction))
#! Ask for the line "8 times slower" first. Then bring it home: which two jobs in their cluster share a TaskManager,
#! and so a connection, with something that writes to a database?
# %% quiz name=quiz-1
L.quiz("10.q1")
# %% quiz name=quiz-2
L.quiz("10.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built both ends of the way before credits. In Flink 1.4 to 1.9 they are `NettyServer` with its
# `WriteBufferWaterMark`, and `PartitionRequestClientHandler` with its `BufferListenerTask`. One line for all
# is fair until somebody in it cannot go on; then it is as fast as its slowest.
#! Leave the room with the question of lesson 11: the sender must know what the receiver has room for. In how many
#! bytes, how often, and what if the answer is a round trip old?
#
# To read: `refimpl/exchange/before_credit/__init__.py`. Its first page is this lesson.
# %% receipt name=receipt
L.receipt()
