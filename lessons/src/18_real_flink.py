# %% [markdown] title name=title
# # Talk to a real Flink
#
# **When you are done** bytes that you wrote open a channel to a Flink 1.11.4, a JVM that has never heard of
# Python, and every record it sends arrives.
#
# 90 minutes. You need frames (lesson 9) and credit (lesson 11). The parts that become yours: the bytes of the
# four messages by which a channel lives, and the talk of a channel when something goes wrong.
#
# Era: Flink 1.11.4. A frame of 2.x has the same nine bytes in front and other bodies.
#! Before anything: ask who has spoken to a program whose source they could not change, byte by byte. What told them
#! that they were wrong? Mostly silence. This lesson has two silences in it.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo
from course.peer.with_flink import which_flink

L = lesson(18)
print(which_flink())
L
# %% [markdown] why name=why
# ## An incident
#
# A team wrote a small reader for one stream of a Flink cluster, in the language of their own service. Its tests
# were green for a year: they ran against the team's own writer. On its first day at the real cluster it opened its
# channels, got two buffers on each, and then nothing, ever. No error, on either side. Their writer had never
# asked for more credit, so their reader had never sent any.
#
# Both ends had the same author, and so the same mistake.
#! The lesson in one sentence: a protocol is right when somebody else's program says so. Ask which of their own systems
#! are tested only against themselves.
# %% [markdown] text name=meet seeds=E7
# ## Four messages
#
# A channel needs four kinds of message. Three go to the producer: `PartitionRequest` asks for a subpartition and
# says how much room there is, `AddCredit` says that there is more, `ResumeConsumption` lets it go on after a
# barrier (a mark in the stream that one may have to wait behind; the producer stops there). One comes
# back: `BufferResponse`, a buffer of records or an event.
#
# Here is one of each as two Flinks said them to one another; an id has 16 bytes and means nothing but itself.
# %% figure name=said
from course.figures.flink_wire import cut_short, flink_wrote

for message in ("PartitionRequest", "AddCredit", "ResumeConsumption", "BufferResponse"):
    print(flink_wrote(message), "\n")
#! Let them find the number of lesson 9: 69 bytes. Then ask where a `BufferResponse` says how long it is: twice, and
#! why (the frame counts everything, the size only the payload: a reader finds a buffer of that size first).
# %% [markdown] text name=look
# What is *not* there is worth a look, too. Nothing says which version speaks, nothing is named, nothing is
# checked. If four bytes are missing, the next four are read in their place. So: what would a Flink do with a request
# whose last number is missing? Its length is right: 65 instead of 69.
# %% predict name=predict-a
L.predict("18.a")
#! Most say b: they think of a stream, in which more may come. But the frame's length said how much there is.
# %% figure name=cut
cut_short()
#! Both channels are gone, though both were asked for alike. Ask what would have happened to other channels on this
#! connection that were right: the same.
# %% [markdown] explain name=explain seeds=E13,E14
# ## What the other end does with mistakes
#
# | you send | a Flink 1.11.4 |
# |---|---|
# | another magic, or a body that is too short | ends the connection, and all channels on it |
# | a partition that it does not have | an `ErrorResponse` for this channel, `PartitionNotFoundException` |
# | a receiver's id in another byte order | sends buffers to an id that you do not have |
# | credit in another byte order | believes it: 3 becomes 50,331,648 |
# | no credit | nothing. It waits |
# | no `ResumeConsumption` | nothing. It waits |
#
# Two kinds of mistake are loud and two are silent. The silent ones are the expensive ones.
#
# In Flink: `NettyMessage` (its inner classes are the messages) and `NettyMessageDecoder`; a request is served by
# `PartitionRequestServerHandler`, all in `runtime.io.network.netty`.
# %% [markdown] task name=task-wire
# ## Your first part: the bytes
#
# - **Given** ids as `bytes`, and numbers.
# - **Do** the three messages a consumer writes, and read what stands before a payload: the 30 bytes from the receiver
#   to the size. `to_frame` puts length, magic and message id in front.
# - **Done when** `check("18.1")` says so. About ten lines.
# - **Start** with `add_credit`, and compare with the bytes above.
# %% exercise id=18.1
#! Who knows struct is done in four lines; who does not writes to_bytes nine times and learns the same. Both are right.
#! Ask the quick ones what their unpack makes of ff ff ff fe, and when a sequence number is below 0 (lesson 9).
# %% check name=check-wire
check("18.1")
# %% hint name=hint
hint("18.1")
# %% swap name=swap-wire
L.swap("18.1", driver="threads")
# %% zoo name=zoo-wire
zoo("18.1")
#! Each table takes one: loud or silent at a real Flink? Then look at the table above again.
# %% swap name=swap-flink
# The same part, and a Flink at the other end. The setup cell says whether it runs here, or is recorded:
# then what one sent is sent again, for credit and by its rules.
L.swap("18.1", driver="flink")
#! This is the moment of the course. With the jar on the machine: show the JVM in a process list while it runs.
# %% [markdown] text name=talk-words
# ## When the partition is not there
#
# In a job all tasks start at about the same time, each on its machine. So a consumer may ask for a partition whose
# producer does not run yet. It gets an `ErrorResponse`: not found. And now?
# %% predict name=predict-b
L.predict("18.b")
#! Write the waits they propose on the board. Somebody says "every second": multiply by a thousand consumers.
# %% figure name=waits
from refimpl.config import Config

wait, longest = Config().request_backoff_initial_ms, Config().request_backoff_max_ms
waits = [wait]
while waits[-1] < longest:
    waits.append(min(2 * waits[-1], longest))
print(f"waits in ms: {', '.join(f'{each:,}' for each in waits)}; then it fails, after {sum(waits) / 1000:g} s")
#! Flink's defaults. Ask what the doubling is for (few questions, and still a quick start), and what the end is for.
# %% [markdown] task name=task-talk
# ## Your second part: the talk
#
# The defaults are those of `taskmanager.network.request-backoff.initial` and `.max`. An error that is *not* "not
# found" is told at once: a channel that is told nothing waits for ever.
#
# - **Given** one channel's reader, which hears of errors and has news for the producer.
# - **Do** `on_error`, `ask_again` and `news`: when to wait, when to give up, and what to say.
# - **Done when** `check("18.2")` says so. About twenty lines.
# - **Start** with every error but "not found"; then with the first wait.
# %% exercise id=18.2
#! Here people write long chains of ifs. Ask for the three questions first, in words: does one wait, may it come, has it
#! waited long enough? Each is one line then.
# %% check name=check-talk
check("18.2")
# %% zoo name=zoo-talk
zoo("18.2")
# %% swap name=swap-talk
L.swap("18.2", driver="flink")
#! Last two lines: "asked 4 times" with waits of 10, 20, 40 ms. Let them say why it is four and not three.
# %% [markdown] spark name=spark-words
# ## The wire as a table
#
# Somebody has recorded every frame that a Flink sent, in hex, two digits to a byte. To **Spark** that is a column of
# text: the kind of a buffer is the byte 33 from the start, the size of its payload the bytes 35 to 38. From that it
# says what two channels must get. Then two channels of ours read from a Flink, and count.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    from pyspark.sql import functions as F

    frames = SECTIONS[18].frame(spark)
    is_data = F.substring("frame", 2 * 33 + 1, 2) == "00"
    size = F.conv(F.substring("frame", 2 * 35 + 1, 8), 16, 10).cast("int")
    counted = frames.groupBy("channel").agg(
        F.count_if(is_data).alias("buffers"),
        F.sum(F.when(is_data, size)).alias("bytes"),
        F.count_if(~is_data).alias("events"),
    )
    prediction = {}
    for row in counted.orderBy("channel").collect():
        prediction |= {f"channel {row.channel}, {name}": row[name] for name in ("buffers", "bytes", "events")}
    print(SECTIONS[18].run(spark, prediction=prediction))
#! Ask why four of the events are barriers and one is not (the end of the partition), and where the watermarks are:
#! among the records, in the buffers.
# %% quiz name=quiz-1
L.quiz("18.q1")
# %% quiz name=quiz-2
L.quiz("18.q2")
# %% swap name=all-parts
# The whole course in one job on two TaskManagers: it loses a file of a checkpoint, crashes and goes on. Spark counts
# the same hours, and a Flink talks to what you wrote today. Your parts are those that passed their checks, in any
# lesson on this machine; ours stand in for the others. Another `seed` is another bad day.
L.all_parts(seed=1)
#! Let them count the lines that say "yours". Whoever has gaps: L.swap takes one part, and sluice progress lists them.
# %% [markdown] recap name=recap
# ## What you have now
#
# A channel that a real Flink takes for one of its own. In Flink 1.11.4 your parts are the inner classes of
# `NettyMessage`, and `RemoteInputChannel` with `InputChannel.increaseBackoff`. Bytes have no names: order, width and
# byte order are all there is. Loud mistakes end a connection; silent ones wait.
#
# To read: `refimpl/exchange/wire_format.py` and `partition_reader.py`, one page each; then
# `consumer_connection.py`, where many channels share a connection. Outside the notebook: `sluice peer --help`.
#! Back to the incident: which of the six rows of the table was it? (No credit.) And which test would have found it
#! in the first week? Any against a program by somebody else.
# %% receipt name=receipt
L.receipt()
