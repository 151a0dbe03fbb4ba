# %% [markdown] title name=title
# # Remote channels
#
# **When you are done** you can take any stream of bytes apart into the messages it was made of, however a
# network has cut it, and say what happens to a buffer on each of the nine steps to another machine.
#
# 75 minutes. You need buffers and their queue (lessons 2 and 7). Nothing of networks is assumed. The parts
# that become yours: the wrapping of every message, the cutting of the stream, and the check that
# nothing is missing.
#
# Era: Flink 1.11.4; where others differ the text says so.
#! Read a sentence aloud without a pause between words and let the room write down where the words end. Then ask
#! what you should have said first. "How many letters each word has" is this lesson.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(9)
L
# %% [markdown] why name=why
# ## An incident
#
# In the test the two services talked for a week without a fault. In production they failed after four
# minutes: "unexpected message 0". Restarted: nine minutes. On a laptop it could not be made to fail.
#
# The code read from the connection, and took what one read gave for one message. On an idle network that
# is what happens. Under load it is not.
#! Ask who has written `data = sock.recv(4096)` and parsed what came. Most have, and it worked. From practice: this
#! bug is found by a bigger customer, not by a test; the fix is three lines, the search for it took two weeks.
# %% [markdown] text name=meet seeds=E20
# ## One connection, many channels
#
# Two tasks on different machines exchange data through a **channel**: one subtask's output for one other
# subtask. There are many of them between two TaskManagers (the processes that run tasks), and opening a
# connection for each would be costly. So they all share **one** (up to Flink 1.11 it may be a few: one for
# each connection index). It carries bytes both ways, keeps their order, and loses none. It has no marks:
# nothing in it says where a message ends.
#
# So every message travels as a **frame**, which says how long it is before it begins. The engine below
# runs two channels, A and B, and shows what really went over the wire.
# %% figure name=wire
from course.figures.wire import Pieces, nine_steps, wire
from widgets import ExchangeView

spoken = wire()
print(spoken)
ExchangeView(spoken.recording, title="One connection, two channels", at=12)
#! Let somebody find the bytes that are the same in every frame (the first three, and the magic), then where A and B
#! differ: behind these nine. Count connections: one. Ask what would be different with a thousand channels; nothing
#! in these two lists but the letters.
# %% [markdown] text name=look seeds=E7,E9
# Step through the picture: a box is a frame on its way. The list above it has the frames as bytes.
#
# The consumer asks for each channel (`PartitionRequest`) and later says how much it can take
# (`AddCredit`; lesson 11 is about that). The producer sends buffers. The `length` of the first frame is
# `00 00 00 45`: in hex 45 is 69, as many bytes as the frame has, the highest byte first (**big-endian**).
# The **magic** is the same in each frame: who reads anything else there has lost its place. The `id` is the
# kind of message: 02 asks, 06 brings credit, 00 a buffer. So the producer's side is the server here, and the
# consumer's the client (`NettyServer`, `NettyClient`).
# %% predict name=predict-a
L.predict("9.a")
#! The subtle wrong one is d: people know that messages are cut, and think they are never glued. Ask which is worse
#! for a program that was tested with cuts only.
# %% figure name=pieces
Pieces(spoken.request_bytes)
#! Play decoder on the board with three columns: came, kept, given out. Do pieces 1 to 5 with the room. At piece 2
#! ask "may I throw anything away?", at piece 5 "may I stop after the first frame?". Each wrong answer is in the
#! zoo.
# %% [markdown] explain name=explain
# ## A stream has no messages
#
# The bytes are those of the first list above. Only the cuts are chance: inside a header, inside a number,
# between frames. One piece completes no frame, another four.
#
# | the network promises | it does not promise |
# |---|---|
# | the bytes come in their order | a piece is a message |
# | none is missing, none comes twice | a message is in one piece |
# | | anything about when |
#
# So who reads keeps what has come, and asks after each piece: are the 4 bytes of length here? Are that
# many bytes here? Only then is there a frame. And a length from outside is believed only where it can be
# true: else whoever sends "two billion" fills the memory of your process while it waits.
#
# In Flink: `NettyMessage` writes frames, `NettyMessageDecoder` cuts them
# (`runtime.io.network.netty`, 1.11.4). These 9 bytes (length, magic `BADC0FFE`, id) are the same from 1.5
# to 2.x. What follows is not: a buffer's frame has 38 bytes before its data in 1.5, 39 in 1.11, 47 or more
# in 2.x. Flink believes any length up to 2³¹ − 1; the engine here has a limit.
# %% [markdown] task name=task-frame
# ## First part: a frame
#
# - **Given** the id of a message, a small number, and its body as `bytes`.
# - **Do** return the frame. The figure above shows real ones.
# - **Done when** `check("9.1")` says so. One to five lines.
# %% exercise id=9.1
#! Does the length count itself? Half of all protocols say yes, half no. Do not answer: have them count the 69
#! bytes. Who is done first may find two ways to write it (int.to_bytes, struct) and say which one hides the byte
#! order.
# %% check name=check-frame
check("9.1")
# %% swap name=swap-frame
L.swap("9.1")
# %% [markdown] task name=task-decoder
# ## Second part: frames out of a stream
#
# - **Given** pieces of a stream, one by one, through `feed`.
# - **Do** `feed` and `next_frame`. The connection asks for frames until the answer is `None`.
# - **Not needed:** what the frames mean; others read that.
# - **Done when** `check("9.2")` says so. About twelve lines.
# - **Start** with a frame that comes whole; then two at once; then half a one. `L.hint("9.2")` helps.
# %% exercise id=9.2
#! People loop in feed and return a list, or return from next_frame without saving the rest. Ask: who calls you, how
#! often, and what do you know at that moment? Who is stuck should get one whole frame through the check before
#! anything else.
# %% check name=check-decoder
check("9.2")
# %% swap name=swap-decoder
L.swap("9.2", driver="threads")
# %% zoo name=zoo
zoo("9.2")
#! Ask each table for one day: on which day of the project would this one be noticed? w01 on the first day under
#! load, w02 when a second channel is asked for; the one that keeps everything after a month, as a memory leak.
# %% [markdown] task name=task-sequence
# ## Third part: nothing is missing
#
# That job ran on threads over a real connection, and *your* decoder read its requests. For each wrong one
# of the zoo, say on which day it would be noticed.
#
# A last safety: all buffers of a channel are numbered from 0. If one is lost by somebody's mistake, a
# channel must fail loudly. Without the check it would put the head of one record before the tail of another.
#
# - **Do** `is_next` and `advance`. **Done when** `check("9.3")` says so. About four lines.
# - **Mind** that the number is a Java `int`: 4 bytes with a sign. After the largest it goes round.
# %% exercise id=9.3
#! Why check at all, if the connection loses nothing? Because your own code does: a buffer skipped in a queue, given
#! twice, recycled twice. The check turns a wrong sum at the end of the month into an exception with a channel's
#! name in it.
# %% check name=check-sequence
check("9.3")
# %% swap name=swap-sequence
L.swap("9.3")
# %% [markdown] text name=nine-words seeds=E1,E6,E10,E11,E13,E15,E16,E21
# ## Nine steps to another machine
#
# Data reaches the next operator in one of three ways. In a chain it is a function call. On one machine the
# consumer reads the producer's queue. To another machine it takes nine steps, once the channel has been asked
# for; here they are for its first buffer, each with the step of the run in which it happened. (If the producer
# fails, an `ErrorResponse` comes: it names a channel, which fails alone, or none, and then all of them do.)
#
# Channels that may send stand in one line, each once. The first sends one buffer, with its number and its backlog,
# and goes to the end of the line if there is more. Who fills a queue only leaves word; the connection's thread sends.
# On the way out nothing is copied, on the way in once: into a buffer of the receiver. With
# `security.ssl.internal.enabled` all of it is encrypted, and both ends show who they are.
# %% figure name=nine seeds=B16,E6,E17
nine_steps()
#! Give nine people one line each on paper, shuffled, and let them stand up in order; then show the cell. Who holds
#! the memory at each step? Ask at line 5: the segment is home, so where is the data if the wire is slow? Lines 1 and 8
#! belong together, as 1 and 4 do on one machine (lesson 7): the reader asked first, and slept.
# %% [markdown] spark name=spark-words
# ## Is it all there?
#
# Real flights lie in three partitions, dealt out by airline. **Spark** counts the rows of each and adds up
# two of their columns. Then three readers on two TaskManagers send every flight through channels, over a real
# connection, to the subtask of its carrier; and the sums of what *arrived* are compared. A frame lost, doubled
# or cut wrongly would change at least one of the nine numbers.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

SUMS = """
    SELECT part, count(*) AS num_rows, sum(dep_delay_minutes) AS delays, sum(flight) AS numbers
    FROM {flights} GROUP BY part ORDER BY part
"""
if spark := spark_or_none():
    from pyspark.sql import functions as F

    flights = SECTIONS[9].frame(spark).repartition(3, "carrier").withColumn("part", F.spark_partition_id())
    prediction = {}
    for row in spark.sql(SUMS, flights=flights).collect():
        prediction[f"partition {row.part}"] = f"{row.num_rows} rows, {row.delays} min, {row.numbers}"
    print(SECTIONS[9].run(spark, prediction=prediction))
#! Ask why sums and not only counts: one frame lost and another doubled keep the count. Which mistake would even the
#! sums not see? Two buffers of a channel in the wrong order; that is what the numbers of part three are for.
# %% quiz name=quiz-1
L.quiz("9.q1")
# %% quiz name=quiz-2
L.quiz("9.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built the framing of a running job. In Flink 1.11.4 it is `NettyMessage` with its encoder and decoder;
# the numbers are checked in `RemoteInputChannel.onBuffer`. A connection is a stream of bytes without marks; a
# frame says how long it is; many channels share one connection, and each has its own id and its own numbers.
# Up to 1.4 sharing had a price, which is the next lesson.
#
# To read: `refimpl/exchange/framing.py`, `request_decoder.py`, and then `decoder.py`, which does the
# same for data without copying it twice, as Flink since 1.11 (`BufferResponseDecoderDelegate`).
# %% receipt name=receipt
L.receipt()
