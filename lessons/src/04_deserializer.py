# %% [markdown] title name=title
# # The spanning deserializer
#
# **When you are done** you can put records together again however they were cut, and say when a
# buffer may go back to its pool.
#
# 75 minutes. You need lesson 3: a record is a header, four bytes that say its length, then its payload, cut
# wherever a buffer ends. The part that becomes yours: the deserializer, through which every record arrives.
#! Hand out the records of lesson 3 on strips of paper, cut every eight letters, and let a table put them together
#! without talking. Whoever did this knows what the object must remember.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(4)
L
# %% [markdown] why name=why
# ## An incident
#
# The totals of a job were too low: by 0.3 %, every day, in every region. Nothing failed. Somebody
# replayed a day, record by record, and found what was missing: always the record *behind* a long one.
#
# A long record had ended in the middle of a buffer. Whoever read it was so glad to have it complete
# that the rest of the buffer was thrown away.
#! Ask how they would find a loss of 0.3 %. Comparing totals tells that it is so, not where. The trick that worked was
#! to sort what was missing and to look for what all of it had in common: its neighbour.
# %% [markdown] text name=meet
# ## The other end of the ribbon
#
# These are the buffers of lesson 3. Now look at them as the **consumer** does, the task that reads. It
# gets one buffer, then another. Nobody tells it where records begin or end.
# %% figure name=ribbon
from widgets import TwoBufferRibbon

TwoBufferRibbon([b"hello", b"to", b"passengers"], segment_size=8, title="What the consumer is given")
#! Cover all but buffer 1. Ask what can be said about it by somebody who has seen nothing else. Nothing at all, not
#! even where a record begins: a reader that loses its place once has lost it for good.
# %% predict name=predict-a
L.predict("4.a")
# %% figure name=reading seeds=B9
from course.figures.reading import reading

reading([b"hello", b"to", b"passengers"], segment_size=8)
#! Read it as a play in two voices: the task asks, the deserializer answers. Three answers are enough for the whole
#! protocol. Stop after buffer 1 and ask what is in the object's memory: one byte, 00, which may mean anything.
# %% [markdown] text name=look
# Each indented line is one call of `get_next_record`. Read them slowly. Buffer 1 gave two records, and
# then one byte was kept, `00`: the beginning of a length. With buffer 2 more was kept, and buffer 3
# completed `passengers`. On the right: how many of the pool's two buffers were free after each went home.
#
# Two were always enough, it seems. Would fewer do?
# %% predict name=predict-b
L.predict("4.b")
#! Most choose that it needs three buffers. Ask those what would happen with a record larger than all memory of the
#! pool; in their world it could never be read, and yet such records exist.
# %% figure name=one-segment
reading([b"passengers"], segment_size=5, num_segments=1)
#! This is the point of the lesson. The memory of the network is lent for as long as one reading takes; what must stay
#! longer is copied. Who keeps a buffer because it might be needed has taken it from all others.
# %% [markdown] explain name=explain seeds=B9,E22
# ## Three answers
#
# That pool had **one** buffer, and the record lay in three. It works because what is still needed of a
# buffer is *copied* before the buffer is handed back: the deserializer **gathers** the pieces.
#
# | answer | a record? | bytes left in the buffer? | what the task does |
# |---|---|---|---|
# | `PARTIAL_RECORD` | no | no | takes the buffer back, gets another |
# | `INTERMEDIATE_RECORD_FROM_BUFFER` | yes | yes | asks again |
# | `LAST_RECORD_FROM_BUFFER` | yes | no | takes the buffer back |
#
# "Last" means last in this buffer, never in the stream. `PARTIAL` keeps what it saw.
#
# A record that lies wholly in one buffer needs no copy: it is shown **in place**, a view of the
# buffer's memory, good until the buffer goes back. Only what spans buffers is gathered.
#
# The task *recycles* the buffer, gives it back to its pool, with what `get_current_buffer` hands out.
#
# In Flink: `SpillingAdaptiveSpanningRecordDeserializer` with `NonSpanningWrapper` (in place) and
# `SpanningWrapper` (gathered), `DeserializationResult` (`runtime.io.network.api.serialization`,
# 1.11.4). In 2.x the deserializer recycles the buffer itself; doing both frees it twice.
#! Ask what last refers to. Half of the room will say the stream. From practice: somebody closed a file on LAST, and
#! lost all but the first buffer of each partition.
# %% [markdown] text name=spilling-words seeds=B10
# ## And a record of 50 MB?
#
# Gathering it would take 50 MB of memory for each channel that has such a record half here. Above 5 MiB
# the pieces go to a file instead: the record is **spilled**. Hence the long name in Flink. In 2.x the limit is
# a setting.
# %% figure name=spilling seeds=B10
from course.figures.reading import where_it_waits

for size in (100_000, 5_000_000, 6_000_000, 50_000_000):
    print(where_it_waits(size))
# %% [markdown] task name=task
# ## Your part
#
# - **Given** buffers of any size, one at a time, cut anywhere: in a payload, in a length.
# - **Do** `set_next_buffer`, `get_next_record`, `get_current_buffer`, as the docstrings say, and an
#   `__init__` for what you keep.
# - **Not needed:** files, views in place, recycling. Copy everything, if you like: right first.
# - **Done when** `check("4.1")` says so. About twenty lines.
# - **Start** with one record in one buffer; then two; then one in two.
#! First right, then fast: copy everything. Let those who finish early read a record in place, and ask them what
#! happens to it after the buffer went home; that bug does not show in any test with one buffer.
# %% exercise id=4.1
# %% check name=check
check("4.1")
#! Rules E and F stop most. E: bytes behind a completed record. F: a header in two pieces. For both ask for the value
#! of the object's memory after the first buffer, on paper.
# %% hint name=hint
hint("4.1")
# %% swap name=swap
L.swap("4.1")
# %% zoo name=zoo
zoo("4.1")
# %% zoo name=incident
zoo("4.1", show="w03")  # the incident: "to" stood behind "hello", and it is gone
#! Ask who would notice. There is no error, and the next record is right again. Such a part loses exactly the records
#! that follow long ones, which is what the on-call engineer found.
# %% [markdown] task name=task-rule
# ## Write the rule
#
# The flights of the swap above go on, half-read records included: what the old reader had gathered was
# handed to yours. And each wrong part was turned down by a **rule**: a small program that tries
# something and looks at what comes back. Now you write one.
#
# - **Given** `read(pieces)`: a new deserializer reads buffers with these bytes, and you get its answers.
# - **Do** return `True` for a part that is right and `False` for one that is wrong.
# - **Done when** your rule turns down two of three wrong parts you have never seen, and spares two right
#   ones. This is how our own rules are measured. About eight lines.
# - **Start** by printing `read(...)` for a stream that you cut yourself.
#! A rule is a question with a known answer. The weak rules ask for one record in one buffer, and every wrong part
#! passes. Ask: which is the shortest stream that all three wrong parts of the zoo read wrongly?
# %% exercise id=4.2
# %% check name=check-rule
check("4.2")
# %% swap name=swap-rule
L.swap("4.2")
# %% [markdown] spark name=spark-words
# ## There and back again
#
# Four hundred documents, most of them longer than a buffer of 64 bytes. **Spark** says, without any
# network, how many rows and bytes each of three partitions has, and the sum of a checksum (CRC-32, a number
# that changes if any byte does) over its texts. Then the same rows travel through the engine, cut and joined.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    SECTIONS[4].frame(spark).createOrReplaceTempView("documents")
    sums = spark.sql("""
        SELECT id % 3 AS part, count(*), sum(length(text)), sum(crc32(encode(text, 'utf-8')))
        FROM documents GROUP BY part ORDER BY part""")
    prediction = {f"partition {part}": f"{n} rows, {size} bytes, {total}" for part, n, size, total in sums.collect()}
    print(SECTIONS[4].run(spark, prediction=prediction))
#! Ask why the check needs three numbers. Rows alone miss a record that was cut short, bytes alone miss two that were
#! swapped; and a plain checksum of everything would depend on the order in which records arrive, a sum of checksums
#! does not.
# %% quiz name=quiz-1
L.quiz("4.q1")
# %% quiz name=quiz-2
L.quiz("4.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built the deserializer of a running job, and a rule that tells right ones from wrong. In Flink
# 1.11.4 this is `SpillingAdaptiveSpanningRecordDeserializer`, one for each channel, since each channel
# is cut by itself; `StreamTaskNetworkInput` drives it. Its own test,
# `SpanningRecordSerializationTest`, is a rule like yours: what goes in comes out.
#
# To read: `refimpl/records/spanning.py`, second half, then `refimpl/consumer/network_input.py`, where the
# answers are used.
# %% receipt name=receipt
L.receipt()
