# %% [markdown] title name=title
# # Record writer and selectors
#
# **When you are done** you can say which channel a record leaves through, what it costs to send it to
# all of them, and when a buffer that is not full leaves.
#
# 75 minutes. You need lessons 3 and 4. The parts that become yours: the selector that every keyed record
# asks, the loop that copies a record to its channels, and the policy that says when a reader is told.
#! Draw one task and four arrows that leave it. The whole lesson is two questions about this drawing: which arrow, and
#! when. Keep them apart; people answer the second one when asked the first.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(5)
L
# %% [markdown] why name=why
# ## An incident
#
# The job counts departures for each airport. It was too slow with two subtasks, so it got four. Nothing
# changed. On every dashboard one subtask is at 100 %, and the others are idle.
#
# "Too little parallelism", said the dashboard. It was the key.
#! Ask for the first thing they would try. More subtasks, more memory, a bigger machine: write all of it down, and
#! cross it out one by one after the figure of the airports.
# %% [markdown] text name=meet seeds=C1,C2,C5
# ## One channel for each subtask
#
# A **record writer** takes the records of one task. It has a **channel** to each subtask behind it, and
# for every record it must choose. A **selector** answers: channel 0, 1, 2 or 3.
#
# If records of one key shall meet in one place, the key decides. Not at once: the key's **hash**, a number
# that is always the same for the same key, picks one of 128 **key groups**, for good, and each subtask owns a
# range of groups. Here are 600 real flights, by carrier, the airline.
# %% figure name=carriers
from course.data.sample import sample_flights
from course.figures.writing import bands, counted

flights = sample_flights(600)
bands(counted(flight["carrier"] for flight in flights), num_groups=128, num_channels=4)
#! Ask why channel 0 has nearly four times as many as channel 2, although each owns 32 groups. The groups are equal,
#! the airlines are not. Then: what would happen with 5,000 aeroplanes as keys?
# %% predict name=predict-a
L.predict("5.a")
# %% figure name=airports
bands(counted(flight["origin"] for flight in flights), num_groups=128, num_channels=4)
#! The three airports fall into groups 97, 116 and 118, all in the last quarter: bad luck, and real. With three keys
#! nobody can use more than three subtasks, with whatever hash. From practice: a job keyed by a flag with two values
#! had 64 subtasks, and 62 of them were paid for nothing.
# %% [markdown] text name=why-groups
# Three keys, and all three in groups above 96: with two subtasks or with four, the last one has them all.
# That is the incident. Few keys are spread badly by any hash; an uneven load is called **skew**.
#
# Why groups at all? A job that counts keeps a number for each key, its **state**. When the job gets a
# fifth subtask, state must move. What moves are ranges of groups, each in one piece.
# %% figure name=moved
from course.figures.writing import moved

moved([f"N{number}" for number in range(1_000)], before=4, after=5)
#! Ask where the keys live that do not move: their state stays on its machine. A state of a terabyte makes the
#! difference between 495 and 818 of a thousand keys a matter of hours.
# %% [markdown] explain name=explain seeds=B8,C2,C3,C5
# ## Who may choose, and how
#
# | selector | a record goes to | for |
# |---|---|---|
# | `KeyGroupSelector` | the subtask that owns its key's group | `key_by` |
# | `RoundRobin`, `Rebalance` | each in turn; rebalance begins somewhere at random | equal loads |
# | `Rescale` | each of the nearby ones in turn | equal loads, fewer connections |
# | `Shuffle` | one at random | equal loads |
# | `Forward` | the subtask with the same number | one to one |
# | `Global` | always the first | a single reader |
# | `Broadcast` | **all** of them | rules, tables, watermarks |
#
# To send to one is **unicast**; to send to all is **broadcast**, and there the writer asks nobody. Where nobody says
# anything an edge is forward, or rebalance if the two have other numbers of subtasks.
#
# The hash is Java's `hashCode`, then *murmur*, which stirs the bits: similar keys have similar codes.
# Python's own `hash` will not do. For texts it is salted: another number in each process.
#
# In Flink: `KeyGroupStreamPartitioner`, `KeyGroupRangeAssignment`, `MathUtils.murmurHash`, 1.11.4; the
# same in 2.x. `RoundRobinChannelSelector` began with channel 1 in 1.5, with 0 since 1.8;
# `RebalancePartitioner` with 0 in 1.5, at random in 2.x. In 1.5 a selector named several channels for a record.
#! Let them match the selectors to jobs they know. The one everybody gets wrong is rebalance before a keyed step: it
#! spreads the load of the step before, never of the keyed one.
# %% predict name=predict-b
L.predict("5.b")
# %% figure name=broadcast seeds=C4
from course.figures.writing import buffers_of_a_broadcast

buffers_of_a_broadcast(num_records=8, num_channels=4)
# %% predict name=predict-c
import IPython

for question in ("5.c", "5.d", "5.e"):
    IPython.display.display(L.predict(question))
#! Three predictions at once: give them two minutes and let them argue. The second one splits every room in half, even
#! among people who have run Flink for years.
# %% figure name=departures seeds=C12,C13,C15
from course.figures.writing import departures

departures(timeout_ms=100)
#! Read the figure line by line with a hand up for asleep and down for told. At 110 ms stop: the buffer is full, and
#! the reader sleeps. This surprises because we think of full as something that the buffer does; it is the writer that
#! acts, when it needs the next one.
# %% [markdown] explain name=explain-flush seeds=C4,C12,C13,C15,C16
# ## Three reasons to leave
#
# You saw all three. What is written is there, but the reader sleeps until it is told:
#
# 1. **Time** (100 ms). Each *buffer timeout* a clock looks and has the reader told of what is there: it
#    **flushes**. The default is 100 ms; -1 means never, and 0 after each record. Lesson 7 measures them.
# 2. **Full** (112 ms). When the *next* buffer is opened, the one before is surely complete, and the reader
#    is told. At 110 ms it was full to the last byte and nobody was: the clock would have looked at 210.
# 3. **An event** (120 ms), such as a barrier, must not overtake records: the open buffers are closed before
#    it. (Unaligned barriers, since 1.11, may overtake: lesson 15.)
#
# A flush does not cut a buffer: it stays open, and the reader takes what is there. So one buffer of 52 bytes
# was read as 13 and 39.
#
# As for the broadcast: the plain writer copied each record four times, into 8 buffers. The other filled 2
# that all four channels read, each at a position of its own.
#
# In Flink: `RecordWriter` with its `OutputFlusher`, `BroadcastRecordWriter` (from 1.9,
# `runtime.io.network.api.writer`, 1.11.4). In 2.x a `BufferWritingResultPartition` does both: it is in
# unicast or in broadcast mode.
#! Ask what timeout they would choose for an alarm, and what for a nightly export. Then: what does a timeout of 0
#! cost? A notification for each record; lesson 7 puts a number on it.
# %% [markdown] task name=task
# ## Your first part
#
# - **Given** a key, the number of key groups and of channels.
# - **Do** `channel_of_key`: code, stirred, group, channel.
# - **Not needed:** hash functions, they are there; checking of numbers; other methods.
# - **Done when** `check("5.1")` says so. Two lines may do.
# - **Start** with 10 groups and 3 channels on paper: 4, 3 and 3.
# %% exercise id=5.1
# %% check name=check
check("5.1")
#! The zoo's third part is the finest: the hash modulo the channels spreads well, passes every test of balance, and
#! breaks the job when it is given a fifth subtask, because state moves by groups.
# %% [markdown] task name=task-copy seeds=A17,B6
# ## Your second part
#
# - **Given** a record in hand, already serialised, and the channels it must reach: one, or all.
# - **Do** `copy_to_channels`: for each channel a buffer, a copy, and what the copy's answer asks for.
# - **Think of** PARTIAL (lesson 3), of the way back to the first byte, and of an empty pool.
# - **Done when** `check("5.2")` says so. About fifteen lines.
# %% exercise id=5.2
# %% check name=check-copy
check("5.2")
#! Those who loop over channels with for lose their place when the pool is empty. Ask: the buffer you want is not
#! there, you return False, and you are called again. Which channels must not get the record a second time?
# %% [markdown] task name=task-flush seeds=C13,C16
# ## Your third part
#
# A full buffer and an event tell the reader by themselves. Your part has the rest: **when** is what waits flushed?
#
# - **Given** the buffer timeout, the time, and whether something waits that no reader was told of.
# - **Do** three answers: after each record? by when? now? The timeout counts from the first record that waits:
#   later ones do not move the deadline. At the deadline it is due, once. If nothing waits, there is none.
# - **Think of** 0, which is after each record, and -1, which is never: both have no clock. And of two who ask: the
#   simulation sees each write, and asks for the deadline; a thread looks once per timeout, and says when it
#   looked last (`since_ms`). A record may wait from then on, so a whole timeout later it is due.
# - **Done when** `check("5.3")` says so. About ten lines.
# %% exercise id=5.3
#! Most put the deadline off with each record. Ask: a record each 50 ms, a timeout of 100: when does the first leave?
# %% check name=check-flush
check("5.3")
# %% swap name=swap
import IPython

IPython.display.display(L.swap("5.1"), L.swap("5.2"), L.swap("5.3"))
# %% zoo name=zoo
zoo("5.1")
# %% [markdown] spark name=spark-words
# ## What a key costs
#
# **Spark** works out how many of 5,000 flights each of 4 subtasks gets: by tail number, which names one
# aeroplane, by carrier, by airport, and by airport with one of 16 numbers behind it, a **salt**. `subtask_of`
# is the hash, the group and the channel once more, written for Spark and without the engine. Then the engine
# runs all four, and counts. Salt spreads the load, and no subtask has all of an airport any more.
#! Ask for the load of the busiest subtask by airport before the run: all of it, four times the mean. Then ask who
#! puts the salted airports together again, and what that second step is keyed by.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS
from course.data.spark_key_groups import subtask_of

if spark := spark_or_none():
    from pyspark.sql import functions as F

    SECTIONS[5].frame(spark).createOrReplaceTempView("flights")
    keys = spark.sql("""
        SELECT tailnum, carrier, origin,
               concat(origin, '-', pmod(xxhash64(flight, event_time_ms, tailnum), 16)) AS origin_salted
        FROM flights""")
    prediction = {}
    for key in keys.columns:
        loads = dict(keys.groupBy(subtask_of(F.col(key), 4, 128)).count().collect())
        prediction |= {f"{key} → {subtask}": loads.get(subtask, 0) for subtask in range(4)}
    print(SECTIONS[5].run(spark, prediction=prediction))
# %% quiz name=quiz
IPython.display.display(L.quiz("5.q1"), L.quiz("5.q2"))
# %% [markdown] recap name=recap
# ## What you have now
#
# You built the selector, the copying loop and the flush policy of a running job's writer. In Flink 1.11.4 these are
# `KeyGroupStreamPartitioner`, `ChannelSelectorRecordWriter` and `RecordWriter.OutputFlusher`. A key has a group for
# good, a group has a subtask for now, and a buffer leaves when it is full, when time is up, or before an event.
#
# To read: `refimpl/producer/key_groups.py`, `selector.py`, `record_writer.py`, `output_flusher.py`.
# %% receipt name=receipt
L.receipt()
