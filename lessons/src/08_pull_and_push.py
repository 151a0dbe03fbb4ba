# %% [markdown] title name=title
# # Pull and push
#
# **When you are done** you can say when the next task may begin to read, what that costs in memory, time and
# slots, and which jobs can never run.
#
# 60 minutes. You need lesson 7: the queue of a channel is read while it is written. The parts that become
# yours: a result that is read when it is finished, and the engine's word on what goes with what.
#
# Era: Flink 1.11; in 1.12 regions are what is started.
#! Two ways to get bread: a baker who brings each roll as it leaves the oven, and one whose shop opens when all is
#! baked. Ask for which of the two one has to stand at the door all the time, and what happens to who oversleeps.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(8)
L
# %% [markdown] why name=why seeds=D9,D10,D12
# ## An incident
#
# Each night a job read the day's flights and wrote a report. At four in the morning, after three hours, its last
# task found the disk full. The job began again: from the first flight. At seven the disk was full once more.
#
# Somebody set one word, `BATCH`. The next time only the last task began again, and the job needed half of the
# cluster. Then the same word was set for the fraud alert, and the first alert came in the evening.
#
# ## The same job both ways
#
# A stream with an end is **bounded**. A job on one may run in two ways.
#
# - **Push**: each task sends what it computes, and the next computes when something comes. *Pipeline* means
#   this. All you have seen is so: a result is **pipelined**.
# - **Pull**: a task writes all of its result, and the next fetches it when it is complete. Such a result is
#   **blocking**, and the job a **batch**: it ends when its last stage does.
#
# Below: two sources, two tasks in the middle, one at the end. A **slot** is a place in a TaskManager where one task
# of each step can run.
#! Keep both halves on the board: what did the word save, and what did it cost? And why could the first night not
#! resume in the middle: where were the records of the last three hours? Nowhere. They had been passed on.
# %% figure name=explained seeds=D5,D6
from course.figures.both_ways import OneResult, begins_again, both_ways, entries_on_disk, how_it_runs

how_it_runs()
#! Ask before showing: which of the two exchanges could be pipelined in a batch? In mode BATCH one from a subtask to one
#! is; here both are dealt out. The last line of each is the bill: how many slots.
# %% predict name=predict-a
L.predict("8.a")
#! Let them draw both on paper first: five lines, from when to when. The pushed one is nearly over when the pulled one
#! has its first result. Then: which of the two can be run by who has a single machine?
# %% figure name=both-ways seeds=D9,D10,D12
both_ways()
#! Three columns. Ask what the second and third have in common (the file), and why the third needs so few buffers: a
#! buffer goes home when it is written, whoever reads. Then why the first needs two slots: all must run at once.
# %% figure name=again
begins_again()
#! This is the incident's second half. Ask what would stand in the table for a pipelined job: 2 everywhere. And what
#! the file must promise for this to work: it can be read twice.
# %% [markdown] text name=file seeds=D1,D2,D11
# | | pull: batch | push: stream |
# |---|---|---|
# | delay | high: waits for all before it | low: sent while computed |
# | who must remember | the reader: when to fetch | the writer: how far each reader is |
# | connections | short | long |
# | its reader fails | begins again alone | the writer does too |
#
# Tasks that push to one another live and die together: a **region**. Between two regions there is a file.
#
# ## A result that is read when it is finished
#
# The writer fills buffers as before. But nobody reads yet; so what is written goes into a file, and the buffer
# goes home at once. One or two for each channel are enough, and the writer waits for nobody.
#
# A new buffer proves the one before complete: then that is written. A flush writes what there is. Nobody is told
# of anything new: a reader comes when all is there.
# %% predict name=predict-b
L.predict("8.b")
# %% figure name=by-hand seeds=D1,D2,D3
result = OneResult(8).open("ab").write("cd").open("ef").flush().reader().write("gh").finish()
print(result.reader().reader().read(1).read(1).read(2).read(1).read(2), "\n")
entries_on_disk()
#! Go down the third column with a finger: it only grows. Two questions for the last lines: who remembers how far each
#! reader is, and what would a queue have done with what was read? Below: what is compressed, and why not all of it.
# %% [markdown] explain name=explain seeds=D3,D4,D5
# ## What it promises
#
# | call | while it is written | finished | released |
# |---|---|---|---|
# | `add` | writes the one before; `True` | closes the entry; `False` | the same |
# | `flush` | writes what nobody has taken yet, if it has bytes | | |
# | `finish` | the rest, the end, then sealed | | |
# | `create_view` | `LocalUsageError` | a new reader, from the beginning | `LocalUsageError` |
#
# An entry is a buffer or an event. They are counted apart, since a reader needs room for buffers only. In the file 8
# bytes stand before each; data may be compressed, if that makes it smaller, and events never are
# (`taskmanager.network.blocking-shuffle.compression.enabled`).
#
# In Flink 1.11.4 this is `BoundedBlockingSubpartition`, read by `BoundedBlockingSubpartitionReader`s.
# `ResultPartitionType` names the kinds: `PIPELINED_BOUNDED`, which streams have ("bounded" is said of the
# buffers), `PIPELINED`, `BLOCKING`, and `BLOCKING_PERSISTENT`, which stays when it has been read. There the rest of a
# flushed open buffer is lost, so nobody may flush.
# %% [markdown] task name=task
# ## Your first part
#
# - **Given** an open file behind `self.write`, and the entry at hand, `self.current`.
# - **Do** `add`, `flush`, `finish` and `create_view`. The table above is their contract.
# - **Not needed:** files, headers, the reader itself.
# - **Done when** `check("8.1")` says so. About twenty lines.
# - **Start** with `add` and `flush`; then the end; then who may read.
# %% exercise id=8.1
#! The trap is the tail: what came last is still in memory when finish is called. Who is stuck writes down for each
#! line of the figure what self.current is. The second trap is recycle: count take and recycle on every way.
# %% check name=check
check("8.1")
# %% swap name=swap
L.swap("8.1")
# %% zoo name=zoo
zoo("8.1")
#! "Reads too early" is the worst of the three: no failure, half of the data. Ask how on-call would find it. By a count
#! in the report that somebody knows by heart, or never.
# %% [markdown] text name=combinations seeds=D6,D7,D8,D12
# ## What goes with what
#
# A reader starts **at once**, with all others (in Flink 1.11.4 `ScheduleMode.EAGER`); **with the first output** of its
# producer; or **after the last** (`LAZY_FROM_SOURCES`: the kind of result decides which of the two). Flink's own table:
#
# | result, stream | starts | used for |
# |---|---|---|
# | pipelined, unbounded | at once | streaming |
# | pipelined, unbounded | with the first output | not used (1) |
# | pipelined, bounded | at once | not used (2) |
# | pipelined, bounded | with the first output | batch |
# | blocking, bounded | after the last output | batch |
#
# (1) Nothing is gained. (2) May serve streams once batch and stream are one. Both run, and our engine allows them.
# All other pairs are invalid: somebody waits for ever, or reads too early. Say who.
#
# A task with several inputs is started on *any* of them, or on *all*
# (`ExecutionConfig#setDefaultInputDependencyConstraint`); `#setExecutionMode` chooses the kinds of results.
# %% [markdown] task name=task-table
# ## Your second part: the word of the engine
#
# - **Given** the kind of result, whether the stream has an end, and when the consumer starts: 24 cases.
# - **Do** `why_not`: `None` for what can run, and a reason for what cannot.
# - **Done when** `check("8.2")` says so. About ten lines.
# - **Start** with what blocks: how many of its cases can run?
# %% exercise id=8.2
#! They write a list of 24. Ask for the two sentences behind it. Most forget the pool: a pipelined writer cannot finish
#! alone. And some read "bounded" in a name as the stream's: that is what the names in Flink invite one to.
# %% check name=check-table
check("8.2")
# %% swap name=swap-table
L.swap("8.2")
# %% [markdown] task name=task-rule
# ## Write the rule
#
# A part is turned down by a **rule**: a small program that tries something and looks at what comes back. Which
# promises does a blocking result make that a queue does not? Test those.
#
# - **Given** `new_result()`, which makes a channel to write, finish and read.
# - **Do** return `True` for a part that keeps them and `False` for one that does not.
# - **Done when** your rule turns down two of three wrong parts you have never seen, and spares two right ones.
# %% exercise id=8.3
#! One reader that reads to the end sees almost nothing. Let them list what can go wrong with two readers, and with one
#! that comes too early, before anybody writes a line. Readers that take turns see more than one after the other.
# %% check name=check-rule
check("8.3")
# %% swap name=swap-rule
L.swap("8.3")
# %% [markdown] spark name=spark-words
# ## Both ways, counted
#
# A thousand flights go to two counters, by airport: as a stream, and as a batch. **Spark**, whose exchanges always
# block, says beforehand how many bytes each file will hold, how many buffers of 1,024 bytes that is, and how many
# flights are read before the first result.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

print(SECTIONS[8].query, "\n")
if spark := spark_or_none():
    print(SECTIONS[8].run(spark))
#! Before it runs: two airports share a file. Which two, and who decided that? Lesson 5. Then let them say the last two
#! numbers without any query.
# %% quiz name=quiz-1
L.quiz("8.q1")
# %% quiz name=quiz-2
L.quiz("8.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built a result that is written once and read as often as one likes: Flink's `BoundedBlockingSubpartition`. Push
# gives the first result soon, and all must run at once; pull needs little, waits for all, and reads again after a
# failure. And you know what cannot run.
#
# To read: `refimpl/producer/bounded_blocking.py`, as long as yours; `refimpl/job/scheduling_modes.py` and
# `regions.py`. Next a pipelined result crosses the network.
#! Back to the incident. What would have saved the first night, and at what price? And why was the word wrong for the
#! fraud alert? Who can say both without "batch" and "stream" has the lesson.
# %% receipt name=receipt
L.receipt()
