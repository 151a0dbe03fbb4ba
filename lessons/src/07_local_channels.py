# %% [markdown] title name=title
# # Subpartitions and local channels
#
# **When you are done** you can say when a record becomes visible to the next task, why a setting of one
# number trades speed against delay, and what a *flush* is and is not.
#
# 60 minutes. You need lesson 2: a buffer is a piece of memory of fixed size, borrowed from a pool. The part
# that becomes yours: the queue between two tasks, with its three calls `add`, `flush` and `poll`.
#
# Era: the rules are those of Flink 1.10 to 1.11; where others differ the text says so.
#! Put a tray on the table and drop notes on it one by one. "When do I carry it next door?" When it is full, when
#! the boss shouts, every five minutes: the three triggers of this lesson, before anybody has seen a class name.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(7)
L
# %% [markdown] why name=why
# ## An incident
#
# By day a fraud alert takes a tenth of a second. At night it takes a tenth as well, but last winter, for one
# night, it took **forty minutes**: somebody had switched the buffer timeout off, "for throughput", and at night
# few records come. The next week somebody set it to 0, "for safety". At noon the same job could not keep up.
#
# Nothing was broken. Both had changed one number, and neither had seen what it does.
#! Ask which of the two nights they would rather explain to their manager. Then the question to keep: why did no
#! metric show the forty minutes? All tasks were idle, no queue was full; the record lay in a buffer nobody was told
#! about.
# %% [markdown] text name=meet seeds=C8,C19
# ## Two tasks, one queue
#
# A **TaskManager** is a process that runs tasks. Each task that writes has an output, and the output has one
# queue for each task that reads it: in Flink's words a **subpartition**. Writer and reader use the queue at the
# same time; Flink calls that *pipelined*.
#
# Buffers join the queue **empty** and are filled while they stand in it. Only the last one can still be open.
# Below, a writer takes three steps for each of its reader. Move the slider, and watch three things: the level in
# each buffer, the dashed one that is being written, and the **backlog**, the number of buffers a reader should
# make room for.
# %% figure name=queue seeds=C8
from course.figures.queues import OneChannel, local_way, slow_reader, three_ways, timeout_curve
from widgets import QueueView

QueueView(slow_reader(), title="A slow reader")
#! Most people think a buffer joins the queue when it is full. Stop where the queue has only a dashed one: it joined
#! empty. Ask who is allowed to look into it, and what could go wrong if two look at once; nothing, only one number
#! is shared.
# %% predict name=predict-a
L.predict("7.a")
#! a and b share the votes. To a: then what would a flush be for? To b: then who would write the other four bytes,
#! and where? Let them argue; the figure is five lines.
# %% figure name=pieces
# [ab…] is a buffer that is still being written
OneChannel(8).open("ab").write("cd").poll().poll().write("ef").poll()
#! The last line is the point: three pieces were delivered and no buffer came home. Delivered is not finished, and a
#! reader that recycles what it has read (w01 of the zoo) takes the paper away from under the writer's pen.
# %% predict name=predict-b
L.predict("7.b")
# %% figure name=told seeds=C12
OneChannel(8).open("ab").open("cd").open("ef").open("gh").poll().poll().poll().poll().poll()
# %% [markdown] explain name=explain seeds=C9,C18
# ## When is the reader told?
#
# A reader that has nothing to do sleeps, and to wake it costs more than to read a buffer. So it is told **once**,
# when there is something new, and reads on by itself: each piece says whether there is more.
#
# An **event** is a message of the engine itself, such as "this was the end". A **flush** says: what is written
# so far may be read as it is. It leaves a **mark** at the queue.
#
# | what happens | told? | because |
# |---|---|---|
# | a first buffer joins, open | no | there is nothing to read yet |
# | a second one joins | **yes** | that proves the first complete |
# | a third, a fourth one | no | the reader knows |
# | an event joins an empty queue | **yes** | an event is complete from birth |
# | flush; one open buffer with unread bytes | **yes**, and the mark goes up | nobody knew of these bytes |
# | flush; several entries | no, but the mark goes up | the reader knows; now it may read the last one too |
# | flush; nothing unread | no | before 1.10 Flink told it all the same |
#
# In Flink: `PipelinedSubpartition` (`runtime.io.network.partition`, 1.11.4).
# %% [markdown] text name=marks seeds=B7,C10,C11,C17
# The mark goes down when `poll` looks at the last entry: what was asked for is being delivered. The **backlog**
# counts buffers with data, no events, and not the last one, as that may still grow. While the mark is up, and at
# the end, the last one counts too (before 1.10: always). A flush of an output goes to each of its queues, and each
# queue counts the bytes and buffers that leave it (`numBytesOut`, `numBuffersOut`).
#
# Writer and reader share one number of a buffer, how much of it is written (`BufferBuilder` and `BufferConsumer`).
# Flink 1.5 built them for that: until then whoever wrote and whoever flushed kept each other waiting at a lock.
#
# What does a flush do to the buffer it finds half full? Say it before you run the next cell.
# %% figure name=flush seeds=C9
OneChannel(8).open("ab").flush().flush().poll().write("cd").write("ef").flush().poll().open("gh").poll()
#! Three flushes, one buffer: a flush cuts nothing, the buffer is filled to its end. Many expect as many buffers as
#! flushes. Ask at the second flush why nobody is told, and at the last line why the first entry is empty and still
#! there.
# %% [markdown] text name=ways seeds=C12,C13,C15,E12
# ## The five steps of the local way
#
# What makes a record visible? One of **three triggers**: its buffer is full, so that the next one joins; an event
# must follow it; or the **buffer timeout** has passed and flushes every channel. Below is the trace of a run
# whose reader comes first: three records, then nothing for a while.
#
# At the end a reader closes its queue, and what still waits in it is let go. Once all readers of a result have come and
# gone, nobody needs it any more.
# %% figure name=local-way seeds=E3
local_way()
#! Read the times aloud: 0.01 ms to write, 100 ms to be seen. Ask which of the three triggers step 3 was, and what the
#! others would have looked like. Whoever knows older texts has met steps 1 and 3 as wait() and notifyAll(). From
#! practice: "Flink adds 100 ms per hop" is half true; the mean is half a period.
# %% figure name=three-ways seeds=E1
# The same records travel in three ways, and each saves something.
three_ways()
# %% [markdown] text name=latency seeds=C16,C22,E1,E2,E4
# In one **chain** a record is handed over by a function call: no bytes at all. In one TaskManager it is
# serialised, and the reader takes the bytes where they lie. Between two, some channels also cross a wire, and for
# those the consumer needs buffers of its own: credit, backlog and frames are for them (lessons 9 to 11).
#
# ## One number, two wishes
#
# The timeout is a period: every so many ms, all that was written becomes visible. 0 means after each record, -1
# never by time. Flink's default is 100 ms (`execution.buffer-timeout`, in 2.x `execution.buffer-timeout.interval`;
# `RecordWriter.OutputFlusher`). A record waits half a period on average, and again at each hop.
# %% predict name=predict-c
L.predict("7.c")
#! "Ten times as many flushes" is arithmetic, not throughput: a flush of a channel costs little, a wake-up for each
#! record costs a lot. Ask what is the most wake-ups a second there can be at 1 ms, with four channels.
# %% figure name=curve seeds=C20,C21,C22
# Simulated time: each step of a task takes 10 µs. measured_curve() of course.figures.queues runs on your clock.
# Here a buffer fills in some 25 ms, so with Flink's 100 ms this job would wait as with "never".
timeout_curve()
#! A famous figure: the curve is flat where people turn the knob and steep where nobody looks. Which setting would
#! they take to a review, and what must they know about the stream first? Whether buffers fill before the timeout
#! does anything.
# %% figure name=live seeds=C22
# This job runs while you look; without a kernel you see one moment of it.
# Set the buffer timeout to "never": what changes in the queues?
# Then slow the board, the reader, and say when the writer must stop.
from course.figures.live import live_queues

live_queues()
#! At "never" the flags go away, and each queue keeps its open buffer until the next one joins. With the slider far
#! to the right both queues fill; ask what stops the writer when nothing tells it to: its pool is empty.
# %% [markdown] task name=task
# ## Your part
#
# - **Given** the queue itself and its books, from the base class: the docstring lists them.
# - **Do** `count_backlog`, `add`, `flush` and `poll`. The table above is their contract.
# - **Not needed:** writing records, threads, locks. Nobody else touches the queue while you do.
# - **Done when** `check("7.1")` says so. About twenty-five lines.
# - **Start** with `add` that only enqueues, and `poll` for finished buffers. Then let one be open.
#
# Then `L.swap` puts your rules into a running job, between two steps, with whatever stands in its queues.
# %% exercise id=7.1
#! The longest part of the course: fifteen minutes for add and poll, then stop everybody and do flush together at
#! the table of the lesson. Who is stuck has usually asked is_finished before take(); the last line of the docstring
#! says why not.
# %% check name=check
check("7.1")
# %% hint name=hint
hint("7.1")
# %% swap name=swap
L.swap("7.1")
# %% zoo name=zoo
# For each: what would the on-call engineer see? zoo("7.1", all=True) has them all.
zoo("7.1")
# %% [markdown] spark name=spark-words
# ## Bursts
#
# Readings come in bursts: many in a few ms, then silence. **Spark** knows only when each one arrived. From the
# times alone it works out, for five timeouts, how many pieces leave and how full they are: one fold over the
# times, no queue anywhere. The cell prints that query first, then the first bursts. Then the engine runs the
# same readings and counts.
#
# Read the last table from 0 ms to never: a piece at 0 ms is one reading of 13 bytes, and what is told, taken and
# given back for it is the same as for a full buffer.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

BURSTS = """
    SELECT arrival_ms div 500 AS burst, min(arrival_ms) AS first_ms, max(arrival_ms) AS last_ms, count(*) AS readings
    FROM {readings} GROUP BY burst ORDER BY burst LIMIT 5
"""
print(SECTIONS[7].query, "\n")
if spark := spark_or_none():
    spark.sql(BURSTS, readings=SECTIONS[7].frame(spark)).show()
    print(SECTIONS[7].run(spark))
#! Before it runs, take one burst from the list and let them count by hand how many buffers it makes at 10 ms. Then
#! ask which part of the fold is the timeout and which the full buffer; the two lines have comments.
# %% quiz name=quiz-1
L.quiz("7.q1")
# %% quiz name=quiz-2
L.quiz("7.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built the queue between two tasks of a running job. In Flink 1.11.4 this is `PipelinedSubpartition`, read
# by a `PipelinedSubpartitionView` and, in the same process, a `LocalInputChannel`. Buffers are read while they are
# written; a reader is told once; a flush makes visible and cuts nothing; and the buffer timeout buys short
# waiting with wake-ups.
#
# To read: `refimpl/producer/subpartition.py`, which is as long as yours, then `subpartition_queue.py` and
# `subpartition_view.py` beside it and `refimpl/consumer/local_channel.py`. There is no credit in a local channel:
# what stops a fast writer there is its own empty pool.
#! End with the incident: both wrong settings, in one sentence each, in the words of the three triggers. Who can do
#! that has the lesson.
# %% receipt name=receipt
L.receipt()
