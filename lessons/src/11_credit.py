# %% [markdown] title name=title
# # Credit
#
# **When you are done** you can say, at any moment of a running channel, how many buffers may leave, and
# why not one more. Both ends of that rule will be code that you wrote.
#
# 75 minutes. You need to know what a buffer and a pool are (lesson 2) and that data travels between
# machines as frames (lesson 9). The parts that become yours: the receiver's count of its empty buffers,
# and the sender's decision what goes on the wire.
#
# Era: Flink 1.11. Credits came with 1.5; where 2.x differs the text says so.
#! Before anybody opens a notebook: draw two boxes and an arrow, and ask who should say how fast to send. Write all
#! answers down. "The sender measures", "the receiver says stop" and "TCP does it" come every time; two of them come
#! back as wrong parts in the zoo, and one was lesson 10.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(11)
L
# %% [markdown] why name=why
# ## An incident
#
# The job moved to two data centres. Nothing failed. The network was idle, the processors were idle, all
# queues on the sending side were full, all tasks on the receiving side waited for input. Throughput: a
# third of what it had been. Somebody raised one number from 2 to 8, and it was back.
#
# What was the number, and why does a *wait* appear where everybody has time?
#! Do not solve it. Let the room bet: parallelism, heap, a timeout, a thread pool. Nobody says "buffers of a
#! channel". Come back to the bets at the table of costs; its second line against its fourth is this incident, to
#! the third.
# %% [markdown] text name=meet seeds=H1,H2,H3
# ## A promise for each buffer
#
# A data buffer that arrives needs an empty buffer to lie in. So the receiver promises: one empty buffer,
# set aside, is one **credit**. The sender may send one data buffer for each credit it holds, and no more.
# Nothing on the wire ever waits for memory.
#
# Two buffers belong to each channel for life: its **exclusive** (own) ones. Others **float**: they
# belong to all channels of a task's input together (its **gate**), and go where they are needed. With
# each data buffer the sender says how many more wait behind it: its **backlog**.
#
# Here a source sends to a sink on another machine. Each record fills a buffer.
# %% figure name=ledger
from course.figures.channels import Ledger, credit_costs, halted_sink
from course.figures.jam import left_over
from widgets import CreditView

run = halted_sink(own=2, floating=3, num_records=12)
CreditView(run.recording, title="One channel, 2 own buffers, 3 floating", at=0)
#! Say "disc" and "square" until the first disc has reached the left side; only then say "credit". Stop at the first
#! buffer that crosses and ask: where is the memory it will land in, and since when?
# %% [markdown] text name=look seeds=H5
# Step through it. A disc is one credit, a square on the right is the empty buffer behind it: there are
# always as many discs as squares. Go on until the first backlog has arrived, and see what the receiver
# does about it. For a while the sink does not read at all. Before you step further, predict:
# %% predict name=predict-a
L.predict("11.a")
#! Most say 2 or "all". To who says "all": how long is the wire, and who owns the memory in its middle? To who says
#! 2: what does the first buffer bring with it besides its data? Do not say which is right; the next cell does.
# %% figure name=halted
run
#! Add up aloud: 5 + 5 + 2 = 12, and nothing lies on the wire. Then ask which of the three lines is lesson 2: the
#! empty pool. So the brake at the far end has reached the source, and no message ever said "slow down".
# %% figure name=live
# The same channel over a real connection, running while you look;
# without a kernel you see one moment of it.
# Slow the sink, then the source, and say each time where the credit is.
from course.figures.live import live_credit

live_credit(own=2, floating=3)
#! With the source slowed, credit lies at the sender and nothing waits; with the sink slowed it is the other way round.
#! Ask which of the two pictures an engineer on call would rather find.
# %% [markdown] explain name=explain seeds=A20,E8,H4,H16
# ## Two flows against each other
#
# | number | whose | how it changes |
# |---|---|---|
# | **backlog** | sender | a *level*: each report replaces the last |
# | **wanted** | receiver | backlog + all own buffers; 0 before the first report |
# | **to announce** | receiver | a *flow*: grows with each empty buffer that comes in, 0 once announced |
# | **promised** | receiver | what it announced and no data has come for |
# | **credit** | sender | a *flow*: grows with each announcement, one less for each data buffer |
#
# Why the own ones on top? The backlog is what is written. They wait for what is not written yet: it need
# not wait for a round trip.
#
# Sums that must agree: empty buffers = promised + to announce. And at the sender, as above: credit =
# granted − sent + forwarded. ATM networks (telephone companies, 1990s) wrote
# `Crd_Bal = Buf_Alloc − (Tx_Cnt − Fwd_Cnt)`.
#
# **Events**, such as the end of a partition, need no credit: they bring their own memory.
#
# In Flink 1.11.4: `RemoteInputChannel` and `BufferManager` receive,
# `CreditBasedSequenceNumberingViewReader` sends; the first credit, all own buffers, travels in the
# `PartitionRequest`. In 2.x *wanted* also falls by one with each data buffer, and the defaults (2 own, 8
# floating) became constants.
# %% predict name=predict-b
L.predict("11.b")
# %% figure name=books seeds=H4,H5,H7
print(Ledger("backlog 5", "announce", "backlog 1"), "\n")
print(Ledger("data", "backlog 1", "announce", "read"))
#! Do the first table by hand on the board before you run it: backlog + 2, minus what is there. A level is a fuel
#! gauge, a flow is a pile of receipts: who adds gauges up, or keeps only the last receipt, has two of the wrong
#! parts. Then the second table, last line only: which number did NOT change, and why is nothing announced?
# %% [markdown] task name=task-receiver
# ## Your first part: the receiver
#
# In the second table an own buffer came home (`read`), and a *floating* one left in its place: one in,
# one out, nothing to announce.
#
# **Texts differ.** Flink's blog has the receiver ask for as many as the backlog, others for what is missing of it:
# with backlog 4 and one of two own buffers empty, 4 or 3. Flink's code adds the own ones, from 1.5 to 2.x: 5.
#
# - **Given** the empty buffers of one channel, and the pool of those that float.
# - **Do** `on_backlog` and `on_recycled`, as the docstrings say.
# - **Not needed:** frames, threads, what happens when data comes.
# - **Done when** `check("11.1")` says so. About fifteen lines.
# - **Start** with what the channel wants; then take what is missing; then think of an empty pool.
# %% exercise id=11.1
#! They write "announce what is empty". Ask: what has the sender been told already? That is the column "promised".
#! Who is done early: what becomes of a channel that wants more when the pool is dry, and of the one behind it?
# %% check name=check-receiver
check("11.1")
# %% hint name=hint
hint("11.1")
# %% swap name=swap-receiver
L.swap("11.1")
# %% zoo name=zoo-receiver
zoo("11.1")
#! From practice: a team saw no more AddCredit messages and searched a "credit leak" for a week. The receiver had as
#! many empty buffers as it wanted; the sender's last buffer was not full and not flushed, so its backlog was 0.
#! Nothing leaked.
# %% [markdown] task name=task-sender
# ## Your second part: the sender
#
# The job above ran on two machines; halfway *your* receiver took over every channel between them. For
# each wrong one of the zoo, say what on-call would see. Then change sides:
#
# - **Given** one subpartition (a queue of data and events) and the credit the receiver has granted.
# - **Do** `add_credit`, `is_available` and `poll`. A data buffer costs one credit, an event nothing.
# - **Done when** `check("11.2")` says so. About ten lines.
# - **Start** with `is_available`: what may go out with credit, what without?
# %% exercise id=11.2
#! The belief to hunt for: "an event goes over the wire, so it needs a buffer". Ask when a job with that part would
#! be noticed. Not at the start and not under load: at its end or its first checkpoint, where it hangs for ever.
# %% check name=check-sender
check("11.2")
# %% swap name=swap-sender
L.swap("11.2", driver="threads")
# %% zoo name=zoo-sender
zoo("11.2")
# %% [markdown] text name=costs-words seeds=H6,H9,H10,H12,H13,H14
# ## What it gives, what it costs
#
# **Gives.** A channel that cannot go on stops itself and nobody else, though all share one connection.
# Less is under way, so memory is bounded and a barrier has less to wait behind. And the sender's queue is
# where backpressure can be seen: on the wire it would be hidden. TCP has such windows too, one layer below, for all
# channels together. Throughput stays at least what it was (`make bench ONLY=19`).
#
# **Backpressure comes earlier.** Less lies between the two ends, so a source must wait sooner, and that is wanted:
# what lies there only grows old and hides the jam. Who wants more under way raises the *floating* buffers.
#
# **Costs.** Own buffers are set aside for each channel, used or not. Each grant is a message (those that
# wait together become one). And a credit that is spent comes back a round trip later, so
#
# > buffers per ms ≤ credit ÷ round trip in ms
#
# With too few, a long wire stays empty. That was the incident, and the number was
# `taskmanager.network.memory.buffers-per-channel`; where it is a constant, as in 2.x, larger segments
# carry more per credit. Below, the same 200 buffers over a slow wire; with one credit you can read the
# round trip off:
# %% figure name=costs seeds=H13
print(credit_costs([(1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (2, 8)]), "\n")
fills = 125e6 * 0.020 / 32_768  # 1 Gbit/s, a round trip of 20 ms, buffers of 32 KiB
for words, has in (("without credits", False), ("with credits", True)):
    print(f"{words}: the sink stops, {left_over(credit_based=has)} buffers more, and the source waits")
print(f"buffers that keep 1 Gbit/s busy over 20 ms: {fills:.0f}")
print(f"bytes set aside for 1000 channels, 2 each:  {2 * 1000 * 32_768:,}")
#! Cover the last column and ask: twice the credit, what happens? Then let them work out the round trip from the
#! first line (1 / 0.25 = 4 ms) and the wire inside a rack (0.2 ms): that is why nobody meets this on a laptop. Last
#! line against the 8: ten credits, hardly more than eight. Floating ones must be asked for first: another trip.
# %% [markdown] spark name=spark-words
# ## Shared, or fixed?
#
# Eight buffers float over four channels. Would it not be simpler to give each channel two more of its
# own? Real traffic is skewed: in the rows below a few users do most of it. **Spark** ranks the four
# busiest, one channel each, and predicts from their rows alone how much can be under way when the first
# 1, 2, 3, 4 of them send to a task that stands still. Then the engine runs all eight cases.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rows = SECTIONS[11].frame(spark)
    busiest = rows.groupBy("user").agg(F.count("*").alias("n")).orderBy(F.desc("n"), "user").limit(4)
    first = Window.orderBy(F.desc("n"), "user").rowsBetween(Window.unboundedPreceding, 0)
    own = F.sum(F.least("n", F.lit(2))).over(first)  # each channel's own two
    more = F.sum(F.greatest(F.col("n") - 2, F.lit(0))).over(first)  # what would float, if there were enough
    shared, fixed = own + F.least(more, F.lit(8)), F.sum(F.least("n", F.lit(4))).over(first)
    prediction = {}
    for k, row in enumerate(busiest.select("n", shared.alias("shared"), fixed.alias("fixed")).collect(), 1):
        print(f"channel {k}: {row.n} rows")
        prediction |= {f"{k} of 4 send, {how}": row[how] for how in ("shared", "fixed")}
    print(SECTIONS[11].run(spark, prediction=prediction))
#! Ask before running: if one of four sends, who has more, shared or fixed? If all four send? So what do floating
#! buffers cost when everybody is busy (nothing), and what do they buy when one is?
# %% quiz name=quiz-1
L.quiz("11.q1")
# %% quiz name=quiz-2
L.quiz("11.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built both ends of the credit of a running job. In Flink 1.11.4 they are
# `BufferManager` (with `RemoteInputChannel`) and `CreditBasedSequenceNumberingViewReader` (with
# `PartitionRequestQueue`). A data buffer is sent only if an empty one waits for it; backlog is a level,
# credit a flow; what floats goes where the backlog is, and comes home when it is not needed.
#
# To read: `refimpl/exchange/credit.py`, whose first page is this lesson in forty lines, then
# `refimpl/consumer/buffer_manager.py` and `refimpl/exchange/producer_credit.py`.
#! Close the circle: run lesson 10's jam(credit_based=True) once more, now that the credit in it is theirs. Then
#! take the answers of the first minute from the board and ask of each what it would need to know, and who knows it.
# %% receipt name=receipt
L.receipt()
