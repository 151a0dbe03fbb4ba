# %% [markdown] title name=title seeds=A13
# # Buffers and pools
#
# **When you are done** you can say who holds each piece of memory of a job, who may have how many, and
# what "insufficient number of network buffers" wants from you.
#
# 60 minutes. You need lesson 1. The parts that become yours: the count of a buffer, the formula that
# shares memory out, and the pool that lives by it.
#
# Era: 1.11. Up to 1.9 an output required as many buffers as it has channels; since 1.10 one more. Flink 2.x
# keeps one segment ready in each pool, and may overdraw a little; the rest is the same.
#! Bring twenty coins and two cups. The table is the global pool, the cups are local pools. Everything in this lesson
#! can be played with them, and should be, before anybody writes a line.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(2)
L
# %% [markdown] why name=why
# ## An incident
#
# The job ran with 40 subtasks. For the holidays somebody made it 80. It did not start: *Insufficient
# number of network buffers: required 81, but only 17 available*. The colleague doubled the memory of the
# Java heap. Same message, same numbers. It was another memory that was short, and nobody knew whose
# it was, or who had asked for how much.
#! Ask what they would do with this message. Most say: more memory. Then ask which memory, and who asked for 81.
#! Nobody can answer, and that is the outcome of the lesson: after it they can.
# %% [markdown] text name=meet seeds=A4,A6,A8
# ## Who has what
#
# A **buffer** is a segment on loan: the segment, how far it is filled, and a count of who still needs it.
# The loan has two lenders. The **global pool** owns all segments of a machine's TaskManager (the process
# that runs tasks there). Each output of a task has a **local pool**, which takes segments from the global
# one when it needs them, and keeps what comes home. An output has a **channel**, a queue, to each subtask that
# reads it.
#
# Below, ten flights travel, and each square is a segment. The letter says which pool has it.
# %% figure name=pools
from course.figures.flights import run_flights
from widgets import PoolView

PoolView(run_flights(10).recording, title="The memory of a job, step by step")
#! Step to the end and back. Ask which number is a permission and which a possession: may have 12, has 3. The two are
#! confused more often than anything else in this lesson, and later in every backpressure talk.
# %% [markdown] text name=look
# Step through it. A square is lent, filled, queued, read, and comes home empty; none appears, none is lost.
# Watch "may have": the **size** of a pool is how many segments it may have *now*. It is a permission, not a
# possession, and it changes when pools come and go. That is the next question.
# %% predict name=predict-a
L.predict("2.a")
# %% figure name=two-jobs seeds=A6,A14
from refimpl.errors import InsufficientBuffersError
from refimpl.memory import LocalBufferPool, NetworkBufferPool

machine = NetworkBufferPool(12, 64)
first = LocalBufferPool(machine, 3, 9, "first job")
lent = [first.request_buffer() for _ in range(9)]
second = LocalBufferPool(machine, 3, 6, "second job")


def tell(what):
    has = [f"{pool.name} has {pool.num_requested}, may have {pool.size}" for pool in (first, second)]
    print(f"{what:<24} {'; '.join(has)}; {machine.num_free} free")


tell("a second job has come")
for buffer in lent[:3]:
    buffer.recycle()
    tell("a buffer came home")
try:
    LocalBufferPool(machine, 7, 7, "third job")
except InsufficientBuffersError as error:
    print(error)
#! Play it with coins before running it: nine in the first cup, now a second job comes. Can the engine take coins out
#! of the first cup? No: the task is writing into them. It can only refuse to give them out again when they come home.
# %% [markdown] explain name=explain seeds=A5,A7,A11,A12,A14,A21
# ## Promise, size, count
#
# | number | what it is | who changes it |
# |---|---|---|
# | **required** | promised when the pool is made; for an output, its channels plus 1 | nobody |
# | **size** | how many it may have now: required, and its share of the rest | the global pool, when one comes or goes |
# | **requested** | how many it has: idle and lent | the pool, one by one |
# | **references** | how many hold one buffer | whoever keeps it, and lets it go |
#
# Only promises can be refused, and only at the start. *Available*, in the error, means promised to nobody.
#
# A pool that is made smaller gives up what lies idle at once. What is lent it cannot call back, so it pays
# back buffer by buffer: you saw 9 of 7, then 8, then 7.
#
# A buffer is born with one reference. Whoever shares it calls `retain` first; everybody calls `recycle`
# once. At zero the segment goes home. Twice home would be one segment lent to two tasks.
#
# In Flink: `NetworkBuffer`, `LocalBufferPool`, `NetworkBufferPool` (`runtime.io.network.buffer`, 1.11.4). All that
# belongs to the network of a TaskManager is in one place there, `NettyShuffleEnvironment`. How much memory that is
# says `taskmanager.memory.network.fraction`: a tenth, if nobody says more.
#! Ask: a job runs happily with 12 buffers in each pool; is it promised 12? No, only what it requires, and the rest
#! may go when a neighbour comes. From practice: a job got slower each night at two, and nothing in it had changed; a
#! batch job on the same machines took its share of the buffers.
# %% [markdown] task name=task
# ## Your part: the count
#
# - **Given** a buffer with `num_references`, its `segment` and its `recycler`.
# - **Do** `retain`, which counts one more and gives the buffer back, and `recycle`, which counts one
#   less and sends the segment home at zero.
# - **Refuse** both when the count is zero already.
# - **Done when** `check("2.1")` says so; `L.show("2.1")` shows the failing calls step by step.
# %% exercise id=2.1
# %% check name=check-1
check("2.1")
#! Watch for recycle that sends the segment home at every call, and for a count below zero that nobody refuses. Ask
#! what happens if one segment is in the idle list twice: two tasks write into the same memory, and the error appears
#! in a third.
# %% hint name=hint
hint("2.1")
# %% predict name=predict-b
L.predict("2.b")
# %% figure name=shares seeds=A9,A10,A15
from refimpl.memory import share_out

for appetites in ([10, 10, 10], [4, 8, 12], [2, 3, 2147483647]):
    limits = [min(10, appetite) for appetite in appetites]
    each = [10 * limit // sum(limits) for limit in limits]
    print(f"10 segments, appetites {appetites}")
    print(f"    each rounded by itself {each}, together {sum(each)}; the engine {share_out(10, appetites)}")
#! Draw the rope: 10 metres, three people, marks at 3.33, 6.67 and 10; cut at 3, 6 and 10. The last person's share is
#! 4 without anybody deciding it. In Flink the order of the pools is that of a hash set, so do not promise who gets
#! the odd one.
# %% [markdown] text name=shares-words seeds=A9,A10,A19
# ## Sharing out
#
# Of 12 segments 6 were promised above; the other 6 are shared out. A pool's **appetite** is how many more
# it could use: its most, less what it requires. If there is enough, each gets its appetite. If not, each
# gets a part in proportion. And because a segment cannot be cut, somebody must round.
#
# Round each part by itself and some segments belong to nobody. So the **running sum** is rounded: think of
# a rope and of marks on it. After each pool, make a mark where all pools so far should end, at a whole
# number. A share is the distance between two marks, and the last mark is the end of the rope.
#
# A pool without a limit says 2147483647. It can never get more than all; so count it as all. In a job a pool's most is
# its channels times `buffers-per-channel` (2), and `floating-buffers-per-gate` (8) on top.
# %% exercise id=2.2
# %% check name=check-2
check("2.2")
#! Those who round each share and then hand the rest to the last pool pass the first rules and fail with unequal
#! appetites. Ask them for 10 among 4, 8 and 12 on paper.
# %% [markdown] text name=pool-words seeds=A12,A18
# ## A pool of your own
#
# Three questions remain, and you answer them. *Which segment does a request get?* An idle one; else one
# more of the global pool, as long as there are fewer than `size`. *Where does one go that comes home?* To
# the global pool, if this pool has too many or has ended. Else to the first **listener**: somebody who
# waits for a buffer. Else it is idle. *What happens when the size changes?* You saw it.
#
# Begin with `set_num_buffers`: a pool is given its size at birth. About twenty lines in all.
# %% exercise id=2.3
# %% check name=check-3
check("2.3")
#! The rule that stops most is about shrinking: they trim the idle ones and forget what comes home later. Ask where in
#! their code a returning buffer meets the new size.
# %% [markdown] text name=swap-words
# ## Into the running job
#
# From the middle of the job on, all its pools are *yours*: every buffer of every record is lent and taken
# back by your code, over what is lent already. No record may be lost. `L.swap("2.1")` puts your buffers in;
# `L.swap("2.2")` your formula, and lets a hungry neighbour come and go. Below: three pools that are wrong.
# For each: what would the on-call engineer see, and when?
# %% swap name=swap
L.swap("2.3")
# %% zoo name=zoo
zoo("2.3")
#! Let the room guess the time: which of these three shows in the first second, which after a neighbour has left,
#! which never in a test? A pool that wakes nobody passes every test with one thread.
# %% [markdown] spark name=spark-words
# ## Which plan starves?
#
# Two dozen plans: so many producers, so many consumers, so many TaskManagers, so many buffers on each.
# An output with `n` channels requires `n + 1` buffers. An input requires 2 for each channel from another
# TaskManager, and 1 that its channels share (1.11; lesson 11 says why). **Spark** lists all pairs of a producer
# `p` and a consumer `c`, with the TaskManager each runs on, adds up what outputs and inputs require there, and
# predicts from the fullest one which plan starves. Then the engine tries to start them all.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    SECTIONS[2].frame(spark).createOrReplaceTempView("plans")
    needed = spark.sql("""
        WITH pairs AS (
            SELECT id, p, c, p * task_managers div greatest(producers, consumers) AS tm_of_p,
                             c * task_managers div greatest(producers, consumers) AS tm_of_c
            FROM plans LATERAL VIEW explode(sequence(0, producers - 1)) AS p
                       LATERAL VIEW explode(sequence(0, consumers - 1)) AS c
        ), required AS (
            SELECT id, tm_of_p AS tm, count(*) + 1 AS n FROM pairs GROUP BY id, tm_of_p, p       -- outputs
            UNION ALL
            SELECT id, tm_of_c, 2 * count(*) + 1 FROM pairs WHERE tm_of_p <> tm_of_c GROUP BY id, tm_of_c, c  -- inputs
        ), on_each AS (SELECT id, tm, sum(n) AS n FROM required GROUP BY id, tm)
        SELECT id, max(n), buffers FROM on_each JOIN plans USING (id) GROUP BY id, buffers ORDER BY id""")
    prediction = {}
    for plan, required, buffers in needed.collect():
        prediction[f"plan {plan}"] = f"{required}, {'starves' if required > buffers else 'starts'}"
    print(SECTIONS[2].run(spark, prediction=prediction))
#! Ask which plans share the number 30, and why one of them starves: the need is the same, the machines are not. Then
#! let them change the plan of their own job in the query, with its parallelism and its TaskManagers.
# %% quiz name=quiz-1
L.quiz("2.q1")
# %% quiz name=quiz-2
L.quiz("2.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built a buffer that counts, the formula, and the pool. In Flink 1.11.4 these are `NetworkBuffer`,
# `NetworkBufferPool.redistributeBuffers` and `LocalBufferPool`. Everything that waits in a stream processor
# waits, in the end, for an empty pool: a task that finds none stops, and that is backpressure.
#
# To read: `refimpl/memory/local_pool.py`, then `refimpl/memory/promises.py`. Next: lesson 3, how a record
# becomes bytes that fit no buffer.
# %% receipt name=receipt
L.receipt()
