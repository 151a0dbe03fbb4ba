# %% [markdown] title name=title
# # Memory segments
#
# **When you are done** you can say why a stream processor owns its bytes, write a number into memory in
# either order, and refuse an address before it does harm.
#
# 45 minutes. You need lesson 0, and Python's slices. What a byte is, the lesson says. The part that becomes
# yours: the segment, in which every record between two tasks travels.
#! Bring a box for twelve eggs, or draw one. A segment is the box, not the eggs: it has a fixed number of places, it
#! goes out full and comes back empty, and nobody makes a new box for each egg.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(1)
L
# %% [markdown] why name=why
# ## An incident
#
# Tuesday, 3:10. One task reads a length of 83,886,080 and waits for that many bytes. It had been sent a 5.
# No exception, no log line. An hour later a colleague finds that two machines write the same number in
# opposite orders. "And why did nobody refuse such a length?" asks the on-call engineer. Nobody had asked
# whether the bytes exist.
#! Let them guess what 83,886,080 has to do with 5 before they read on. Write it in hex on the board, 05 00 00 00, and
#! wait. It takes half a minute, and then the whole lesson is on the board.
# %% [markdown] text name=meet seeds=A3,A22
# ## The bytes of a job
#
# A **byte** is a number from 0 to 255, written here as two hex digits, `00` to `ff`. Memory is bytes in a
# row; the number of a byte, from 0, is its **index**.
#
# Python makes new objects for every record and throws them away again. An engine that moves millions
# would be busy with that alone, and could not say how much memory it needs. So it takes all of its memory
# once, at the start, in pieces of one size: **segments**, of 32 KiB by default, 64 bytes in our pictures.
# A segment is lent out, filled, sent, emptied and lent again, as long as the job runs.
#
# Here is one. A job with ten flights ran until its first segment was full; then we looked.
# %% figure name=segment
from course.figures.flights import full_segment
from widgets import SegmentView

SegmentView(full_segment(), types="records", title="The first full segment of a job of flights")
#! Ask the room to find the two hatched places first, then one letter. Let somebody decode a record aloud with an
#! ASCII table. Reading one record by hand removes the fear of hex for all later lessons.
# %% [markdown] text name=look
# Hatched: four bytes that say how long the next record is. Then the record. You can read it: `45 57 52` are
# the letters EWR, an airport, and the eight bytes behind them say how many minutes late the flight left: the
# first one 2, the second -4, for it left early. The last record does not fit, so it is cut; lesson 3 is about
# that. No names are in there, and no commas. **Who reads must know** where a number starts, how many bytes it
# has, and which of them counts most.
#
# And what if the place is wrong? In Python, `memory[6:10]` of 8 bytes is a slice like any other.
# %% predict name=predict-a
L.predict("1.a")
#! Most Python programmers choose IndexError, since memory[9] does raise it. Ask for the difference between an index
#! and a slice; that is the trap, and half of the zoo of exercise 1.1 sits in it.
# %% figure name=slices
from refimpl.memory import MemorySegment

memory = bytearray(range(0x10, 0x18))
small = MemorySegment(memory, 0)
for asked in ("memory[6:10]", "memory[-3:-1]", "small.window(6, 4)", "small.window(-3, 2)"):
    try:
        print(f"{asked:<19} gives", eval(asked).hex(" "))
    except IndexError as error:
        print(f"{asked:<19} raises IndexError: {error}")
#! Stress the second line: a negative index is not refused either, it silently means another place. A story: a parser
#! read its length field one byte too early, got a huge number, sliced to the end of the input, and reported success
#! with an empty list.
# %% [markdown] explain name=explain seeds=A1
# ## What a segment promises
#
# | you ask for | you get |
# |---|---|
# | bytes inside, up to the very end | a **window**: the memory itself, no copy |
# | a byte outside, before or behind | `IndexError`, and nothing has changed |
# | anything, after the segment was freed | an error that says so, whatever the index |
#
# All segments are slices of one large block. Without bounds the byte behind yours is a byte of another
# task. And a freed segment may belong to somebody else by now: that comes first, before any index.
#
# A window must not be a copy. In Python a slice of `bytes` or `bytearray` is new memory; a slice of a
# `memoryview` is the same memory, seen through a frame.
#
# In Flink: `MemorySegment` (`core.memory`, 1.11.4). There the memory lies outside of Java's heap, where no
# garbage collector moves it; the two errors are `IndexOutOfBoundsException` and `IllegalStateException`. All of
# this is the same in 2.x.
#! The order of the two errors is asked in check 1.1, rule F. Say it as a door and a shelf: if the shop is closed,
#! nobody asks whether the shelf is empty. A message about an index would send on-call looking at the wrong thing.
# %% [markdown] task name=task seeds=A1
# ## Your part: a window
#
# - **Given** `index` and `length`, in bytes; yours has `self.view`, a memoryview, and `self.size`.
# - **Give back** the memory of these bytes, or refuse as the table says.
# - **Not needed:** numbers, other segments. They come next, and go through your window.
# - **Done when** `check("1.1")` says so; `L.show("1.1")` shows the failing call beside the right one.
#   Five lines will do.
# %% exercise id=1.1
# %% check name=check-1
check("1.1")
#! Common here: bytes(...) around the slice, which makes a copy (rule B), and > against >= at the end (rule C). For
#! both ask for the smallest window that shows the mistake, and let them try it in a new cell.
# %% hint name=hint
hint("1.1")
# %% predict name=predict-b
L.predict("1.b")
# %% figure name=orders
from refimpl.memory import ByteOrder

small = MemorySegment(bytearray(4))
for order in (ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN):
    small.put_int(0, 5, order)
    read = {each.name: small.get_int(0, each) for each in (ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN)}
    print(f"5 written {order.name:<13}  {small.get(0, 4).hex(' ')}  reads as {read}")
#! Ask who has met this in practice: image formats, network captures, a database dump from another machine. Then ask
#! which side was wrong. Neither; they had not agreed, and that is what a protocol is.
# %% [markdown] text name=orders-words seeds=A1
# ## Which byte first?
#
# A number above 255 needs several bytes. **Big-endian**: the one that counts most comes first, as we write
# digits. **Little-endian**: the one that counts least comes first, as most processors do it. Both are right,
# as long as both sides agree. Flink writes to the wire big-endian; inside one machine it uses the machine's
# own order, `NATIVE`, which is fastest.
#
# An `int` is four bytes with a sign: half of the patterns mean negative numbers, so `ff ff ff fc` is -4, as in
# the figure.
# It may start at any byte. Write `put_int` and `get_int`: one line each, through `self.window`.
# %% exercise id=1.2
# %% check name=check-2
check("1.2")
# %% [markdown] text name=copy-words
# ## From segment to segment
#
# The last part copies `length` bytes from `index` here to `target_index` there. All of them or none:
# whoever refuses must not have begun. The target may be this very segment, with ranges that overlap: then
# the bytes arrive as they were *before* the copy.
# %% exercise id=1.3
# %% check name=check-3
check("1.3")
#! The usual failure is a copy byte by byte that eats its own tail when the ranges overlap. Draw six boxes and copy 0
#! to 3 onto 2 to 5 by hand, from the left; the third byte is already the new one.
# %% [markdown] text name=swap-words
# ## Into the running job
#
# The next cell lets records travel through *your* segment from the middle of the job on: length and record
# are put into one, and `copy_to` brings them into the buffers. Then it counts. `L.swap("1.1")` and
# `L.swap("1.2")` do the same with your other two parts; below them, three known-wrong ones. For each: what
# would the on-call engineer see?
# %% swap name=swap
L.swap("1.3")
# %% zoo name=zoo
zoo("1.2")
# %% [markdown] spark name=spark-words
# ## How much of a segment stays empty?
#
# Suppose every record began in a segment of its own. Large segments would stay nearly empty, small ones
# would be many. **Spark** makes two thousand documents, most of them short and a few huge, and predicts
# from their lengths alone: a record of `n` bytes with its 4 of length needs `ceil((n + 4) / size)` segments.
# Then the engine fills segments of its pool with the same records, and counts.
#
# Look at the empty bytes at 32 KiB. This is why Flink does *not* give each record a segment of its own:
# records follow each other without a gap, and one that does not fit is cut.
#! Before the run: how much of 32 KiB stays empty if each document has its own? Write guesses down; nobody dares to
#! say as much as it is. Show next lesson 3, which is the answer to this waste.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    SECTIONS[1].frame(spark).createOrReplaceTempView("documents")
    prediction = {}
    for size in (1_024, 4_096, 32_768):
        asked = "SELECT sum(ceil((size_bytes + 4) / {size})) AS n, sum(size_bytes + 4) AS filled FROM documents"
        n, filled = spark.sql(asked.format(size=size)).first()
        name = f"{size // 1_024} KiB"
        prediction |= {f"{name}: segments": n, f"{name}: bytes empty": n * size - filled}
    print(SECTIONS[1].run(spark, prediction=prediction))
# %% quiz name=quiz-1
L.quiz("1.q1")
# %% quiz name=quiz-2
L.quiz("1.q2")
# %% [markdown] recap name=recap seeds=A2
# ## What you have now
#
# You built the three ways to the bytes of a segment: a window, a number, a copy. In Flink 1.11.4 this is
# `MemorySegment`, and `HybridMemorySegment` below it, for memory in Java's heap and outside of it: as long as only
# one class of segments is loaded, Java's compiler calls its methods without looking them up. A fixed number of
# pieces of a fixed size: so the engine knows what it uses, and "no piece left" means something. To read:
# `refimpl/memory/segment.py`. Next: lesson 2, who may have how many of them.
# %% receipt name=receipt
L.receipt()
