# %% [markdown] title name=title
# # The spanning serializer
#
# **When you are done** you can cut any record into buffers of any size, and say after each copy what
# became of the record *and* of the buffer.
#
# 75 minutes. You need lesson 0 and the idea of a byte. The part that becomes yours: the serializer,
# through which every record between two tasks goes.
#
# Era: Flink up to 1.11 has the three results of this lesson as a class. Later versions keep the cases
# and dropped the class.
# %% setup name=setup
from course import check, hint, lesson, show, zoo

L = lesson(3)
L
# %% [markdown] why name=why
# ## An incident
#
# The job ran for a year. Then a partner sent documents of 40 kB instead of 4. No exception. No error in
# any log. The consumer simply stopped: its input was full of bytes, its output empty, and the last log
# line was a day old.
#
# A record had met the end of a buffer, and one of the two sides had its own idea of what that means.
# %% [markdown] text name=meet
# ## Buffers are full at the wrong moment
#
# A buffer has a fixed size, chosen before the first record was written: 32 KiB by default, 8 bytes in
# the pictures here. A record is as long as it is. Hardly ever does one end where the other does.
#
# On the stream a record is four bytes that say how long it is, then the record. Below, three records go
# into buffers of 8 bytes. The four bytes of length are hatched.
# %% figure name=ribbon
from widgets import TwoBufferRibbon

TwoBufferRibbon([b"hello", b"to", b"passengers"], segment_size=8, title="Three records, buffers of 8 bytes")
# %% [markdown] text name=look
# Step through it, copy by copy, and read the answer beside each: it is the serializer's, and the queue
# on the right grows by what it says.
# %% predict name=predict-a
L.predict("3.a")
# %% figure name=one-record
from widgets import copies_of

list(copies_of([b"hello"], segment_size=8))
# %% predict name=predict-b
L.predict("3.b")
# %% figure name=cut-header
list(copies_of([b"to", b"hi"], segment_size=8))
# %% [markdown] explain name=explain
# ## Two questions, not one
#
# After each copy there are two questions. Is the record finished? Is the buffer full?
#
# | | the buffer has room | the buffer is full |
# |---|---|---|
# | **the record is finished** | `FULL_RECORD` | `FULL_RECORD_MEMORY_SEGMENT_FULL` |
# | **there is more of it** | (cannot happen) | `PARTIAL_RECORD_MEMORY_SEGMENT_FULL` |
#
# The writer needs both answers. `PARTIAL` means: close this buffer, ask for another, copy on.
# `FULL_RECORD_MEMORY_SEGMENT_FULL` means: close it, and ask for **none**, since there is nothing to put
# in. A writer that asks anyway holds a buffer for every channel that has nothing to say, and with a
# small pool it waits for ever.
#
# The length belongs to the record, not to the buffer. It is bytes like any others: it may start in one
# buffer and end in the next.
#
# In Flink: `SpanningRecordSerializer`, `SerializationResult` (`runtime.io.network.api.serialization`,
# 1.11.4).
# %% [markdown] text name=broadcast-words
# ## Once serialised, copied often
#
# A record for all channels is serialised **once** and copied for each: copy to channel 0, `reset`, copy
# to channel 1. So `reset` goes back to the first byte of the *same* record, its length included. And
# when a large record is out, `prune` lets it go, so that one huge record does not stay in memory for ever.
# %% figure name=edges
for size in (9, 13, 14):
    print(f"two records of 5 bytes, buffers of {size}:")
    print(*copies_of([b"hello", b"world"], segment_size=size), sep="\n")
# %% [markdown] task name=task
# ## Your part
#
# - **Given** one record at a time, as `bytes`, and builders of any size, some partly filled.
# - **Do** `serialize_record`, `copy_to_buffer_builder`, `reset` and `prune`, as the docstrings say.
# - **Not needed:** asking for buffers, closing them, channels. The writer does that.
# - **Done when** `check("3.1")` says so. About fifteen lines.
# - **Start** with a record that fits, then let it not fit.
# %% exercise id=3.1
# %% check name=check
check("3.1")
# %% hint name=hint
hint("3.1")
# %% show name=show
show("3.1")
# %% [markdown] text name=swap-words
# ## Into the running job
#
# Flights run through buffers of 64 bytes. Halfway, *your* serializer takes over, between two buffers.
# No record may be lost, and no hour of the answer may change.
# %% swap name=swap
L.swap("3.1")
# %% swap name=swap-small
L.swap("3.1", pool=2)
# %% zoo name=zoo
zoo("3.1")
# %% [markdown] text name=zoo-words
# For each of the three write one line: what would the on-call engineer see? `zoo("3.1", all=True)` shows
# the whole collection.
# %% [markdown] spark name=spark-words
# ## How often is a record cut?
#
# Real documents are long-tailed: most are short, a few are huge. **Spark** makes two thousand of them,
# as a pure function of the row number, and predicts for three buffer sizes how often a copy will answer
# `PARTIAL`. No serializer is involved: a record from byte `s` to byte `e` of the stream is cut at each
# multiple of the buffer size between them, and there are `(e - 1) div size - s div size` of these.
#
# Then the engine's own serializer cuts the same records, and we count.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.figures import count_results

if spark := spark_or_none():
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    chance = F.pmod(F.xxhash64("id", F.lit(7)), F.lit(1 << 53)) / float(1 << 53)
    length = F.least(F.lit(100_000), F.floor(20 * F.pow(1 - chance, F.lit(-0.9)))).cast("long")
    documents = spark.range(2_000).select("id", length.alias("length"))
    end = F.sum(F.col("length") + 4).over(Window.orderBy("id"))
    stream = documents.withColumn("e", end).withColumn("s", F.col("e") - F.col("length") - 4).cache()
    lengths = [row.length for row in stream.orderBy("id").collect()]
    print(f"{len(lengths)} documents, median {sorted(lengths)[1000]} bytes, longest {max(lengths)}")
    for size in (64, 1_024, 32_768):
        cuts = F.floor((F.col("e") - 1) / size) - F.floor(F.col("s") / size)
        predicted = stream.agg(F.sum(cuts)).first()[0]
        measured = count_results((bytes(n) for n in lengths), size)["PARTIAL_RECORD_MEMORY_SEGMENT_FULL"]
        print(f"buffers of {size:>6}: Spark predicts {predicted:>6} PARTIAL, the engine gave {measured:>6}")
# %% quiz name=quiz-1
L.quiz("3.q1")
# %% quiz name=quiz-2
L.quiz("3.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built the spanning serializer of a running job. In Flink 1.11.4 this is
# `SpanningRecordSerializer`; its answers are `SerializationResult`, and `RecordWriter` acts on them. A
# record is a length and a payload, cut wherever a buffer ends, and each copy answers two questions.
#
# To read: `refimpl/records/spanning.py`, then `refimpl/producer/record_writer.py`, where the answers
# are used.
# %% receipt name=receipt
L.receipt()
