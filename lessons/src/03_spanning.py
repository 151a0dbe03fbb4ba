# %% [markdown] title name=title
# # The spanning serializer
#
# **When you are done** you can cut any record into buffers of any size, and say after each copy what
# became of the record *and* of the buffer.
#
# 75 minutes. You need lesson 0. The part that becomes yours: the serializer, through which every record
# between two tasks goes.
#
# Era: Flink 1.5 to 1.11. In 1.12 the class and its three results were removed, and the cases stayed: a
# `BufferWritingResultPartition` copies whole serialised records over as many buffers as they need.
#! Draw one strip of bytes on the board before anything else, and above it marks every eight bytes. Say: the stream
#! does not know the marks, and the marks do not know the records. The whole lesson is what happens where the two
#! meet.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(3)
L
# %% [markdown] why name=why
# ## An incident
#
# Two teams wrote the two ends of a channel. Their test passed: a hundred short records here, the same
# hundred there. In production the consumer stopped within a minute. No exception. No error in any log. Its
# input was full of bytes, its output empty.
#
# All records of the test had fitted into one buffer. In production one met the end of a buffer, and each
# side had its own idea of what that means.
#! Ask who has seen a job that is silent: no error, no progress, full input. Then ask what they restarted. From
#! practice: a protocol test with one short message passed for months; the first message longer than the socket's
#! buffer broke it. Everybody tests the middle of a buffer, and nobody its edge.
# %% [markdown] text name=meet seeds=B2,B11
# ## Buffers are full at the wrong moment
#
# To travel, a record becomes bytes in a row: it is **serialised**. A byte is a number from 0 to 255, written
# here as two hex digits; `74` is a t. On the stream a record is a **header** (or length prefix), four bytes that say
# how long it is, and then its **payload**, the record itself. Nothing else: no mark at the end, no gap. Beside records
# a few signs of the engine travel in the same way, such as the time (lesson 13); they and records are its *elements*.
# What is said *about* a stream, its *events*, has bytes of its own (lesson 7).
#
# A buffer has a fixed size, chosen before the first record was written: 32 KiB by default, 8 bytes in our
# pictures. A record is as long as it is. Below, "to" is copied into a buffer; its header is hatched. The
# answer beside the copy is the serializer's. The queue on the right holds the buffers on their way.
# %% figure name=fits
from widgets import TwoBufferRibbon

TwoBufferRibbon([b"to"], segment_size=8, title="A record that fits into a buffer of 8 bytes")
#! Count with the room: four hatched bytes, two letters, two bytes of room. Ask: is the record finished? Is the buffer
#! full? Write both questions on the board and leave them there; after each later figure point at them again.
# %% predict name=predict-a
L.predict("3.a")
# %% figure name=one-record
from widgets import copies_of

list(copies_of([b"hello"], segment_size=8))
#! Those who said "none" forgot the header, those who said 5 gave every buffer one. Keep the second group in mind:
#! theirs is the first part in the zoo, and the incident.
# %% predict name=predict-b
L.predict("3.b")
# %% figure name=ribbon seeds=B3,B11
TwoBufferRibbon([b"hello", b"to", b"passengers"], segment_size=8, title="Three records, buffers of 8 bytes")
#! Step to copy 4 and stop. One byte of a header stands at the end of buffer 1, three at the start of buffer 2. Ask
#! what a reader can know after buffer 1 alone. Right: not even how long the record is. Lesson 4 lives on that.
# %% predict name=predict-c
L.predict("3.c")
# %% figure name=edges
for size in (7, 11, 12):
    print(f"two records of 3 bytes, 7 with their header, buffers of {size}:")
    print(*copies_of([b"tea", b"bag"], segment_size=size), sep="\n")
#! Let somebody read the first two answers aloud, then cover the bytes and ask the room to derive the answers of sizes
#! 11 and 12 from arithmetic: 7 + 4 = 11, so the second header fills the buffer to its last byte, and its payload goes
#! on.
# %% [markdown] explain name=explain seeds=B3,B4
# ## Two questions, not one
#
# After each copy there are two questions. Is the record finished? Is the buffer full?
#
# | | the buffer has room | the buffer is full |
# |---|---|---|
# | **the record is finished** | `FULL_RECORD` | `FULL_RECORD_MEMORY_SEGMENT_FULL` |
# | **there is more of it** | (cannot happen) | `PARTIAL_RECORD_MEMORY_SEGMENT_FULL` |
#
# The writer, which owns the buffers, needs both answers. `PARTIAL` means: close this buffer, ask for
# another, copy on. `FULL_RECORD_MEMORY_SEGMENT_FULL` means: close it, and ask for **none**, since there is
# nothing to put in. A writer that asks anyway holds an empty buffer for each consumer; if the pool has no more
# than these, it waits for ever.
#
# The header belongs to the record, not to the buffer. It is bytes like any others: it may start in one
# buffer and end in the next.
#
# In Flink: `SpanningRecordSerializer`, `SerializationResult` (`runtime.io.network.api.serialization`,
# 1.11.4).
#! The lower left cell deserves a minute. Ask for a case; there is none, because a copy goes on until one of the two
#! is exhausted. A table with an impossible cell is how one sees that two questions give three answers.
# %% [markdown] text name=broadcast-words seeds=B5,B6
# ## Once serialised, copied often
#
# A record for many consumers is serialised **once** and copied for each of them: copy for the first, `reset`,
# copy for the second. So `reset` goes back to the first byte of the *same* record, its header included. And
# when a record is out, `prune` lets it go: otherwise one huge record would stay in memory for ever. Both came
# with Flink 1.8; before, each channel serialised for itself.
# %% [markdown] task name=task
# ## Your part
#
# - **Given** one record at a time, as `bytes`, and **builders**: buffers that are still being written, of any
#   size, some partly filled. `append` copies what there is room for, `commit` makes it visible, and
#   `builder.is_full` says whether there is no room left.
# - **Do** `serialize_record`, `copy_to_buffer_builder`, `reset` and `prune`, as the docstrings say.
# - **Not needed:** asking for buffers, closing them, channels. The writer does that.
# - **Done when** `check("3.1")` says so. About fifteen lines.
# - **Start** with a record that fits, then let it not fit.
#! Ask everybody to write on paper, before they type: which two values must the object remember between two calls?
#! Those who answer "the record, and how far I am" will need ten minutes. Those who keep header and payload apart,
#! thirty.
# %% exercise id=3.1
# %% check name=check
check("3.1")
#! Most stop at rule D (the exact edge) or F (a cut header). For D point at the table, not at the code. For F ask
#! where in their code the first four bytes are treated differently from the fifth; the cure is always to delete
#! something.
# %% hint name=hint
hint("3.1")
# %% show name=show
show("3.1")
# %% [markdown] text name=swap-words
# ## Into the running job
#
# Flights run through buffers of 64 bytes. Halfway, *your* serializer takes over, between two buffers.
# No record may be lost, and no hour of the answer may change. The second run gives the whole job
# two buffers: it lives from hand to mouth. Compare the steps.
# %% swap name=swap
L.swap("3.1")
# %% swap name=swap-small
L.swap("3.1", pool=2)
#! Ask why the same records take so many more steps. One subtask instead of two explains a factor of two, no more; the
#! rest is the producer, which stops after each buffer until the consumer has given one back. They have just seen
#! backpressure, whether or not they know the word.
# %% zoo name=zoo
zoo("3.1")
# %% [markdown] text name=zoo-words
# For each of the three write one line: what would the on-call engineer see? `zoo("3.1", all=True)` shows
# the whole collection. The first one is the incident, and the next cell runs it: its second buffer begins
# with a header of its own. The reader still misses one byte of `hello`. It takes the `00`, believes that a
# record is complete, and reads the next four bytes as a length.
# %% zoo name=incident
print("00 00 05 6f as a length:", int.from_bytes(bytes.fromhex("0000056f"), "big"), "bytes, which never come")
zoo("3.1", show="w01")
#! Play the reader yourself: hold out a hand and ask for one byte, then for four. At 1391 sit down and wait. Everybody
#! remembers the instructor who sat there; that is what a job without an exception looks like from inside.
# %% [markdown] spark name=spark-words
# ## How often is a record cut?
#
# Real documents are long-tailed: most are short, a few are huge. **Spark** makes two thousand of them,
# each a pure function of its row number, and predicts for three buffer sizes how often a copy will answer
# `PARTIAL`. No serializer is involved. The query lays the records end to end: each has `n` bytes with its
# header, and `e`, a running sum, is where it ends. It is cut at each multiple of the buffer size within it,
# and `div`, which divides and drops the rest, counts these.
#
# Then the engine's own serializer cuts the same records, and the two are compared.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    SECTIONS[3].frame(spark).createOrReplaceTempView("documents")
    asked = """
        WITH stream AS (SELECT size_bytes + 4 AS n, sum(size_bytes + 4) OVER (ORDER BY id) AS e FROM documents)
        SELECT sum((e - 1) div {size} - (e - n) div {size}) FROM stream"""
    prediction = {f"{size} bytes": spark.sql(asked.format(size=size)).first()[0] for size in (64, 1_024, 32_768)}
    print(SECTIONS[3].run(spark, prediction=prediction))
#! Before the run ask for a guess at 64 bytes: most documents are longer, so the number is far above two thousand.
#! Then: why does the count fall about sixteen times from 64 to 1024, as the size grows? Cuts depend on bytes, not on
#! records.
# %% quiz name=quiz-1
L.quiz("3.q1")
# %% quiz name=quiz-2
L.quiz("3.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built the spanning serializer of a running job. In Flink 1.11.4 this is
# `SpanningRecordSerializer`; its answers are `SerializationResult`, and `RecordWriter` acts on them. A
# record is a header and a payload, cut wherever a buffer ends, and each copy answers two questions.
#
# To read: `refimpl/records/spanning.py`, then `refimpl/producer/record_writer.py`, where the answers
# are used.
# %% receipt name=receipt
L.receipt()
