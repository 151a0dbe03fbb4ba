# %% [markdown] title name=title
# # Chains and outputs
#
# **When you are done** you can say which operators of a job share a task, what that saves and what it
# may cost, and which of Flink's eight outputs stands behind an operator.
#
# 60 minutes. You need lesson 0: a job is a graph of operators, and each of them runs in several **subtasks**.
# The parts that become yours: the rule of chaining, the chains themselves, and an output that copies.
#
# Era: Flink 1.11; where others differ the text says so.
#! Ask three people to pass a cup along the table, then to post it to each other. Same cup, same order: what did the
#! post cost, and what does it allow that the hand does not? Distance. That is chaining, and when it is forbidden.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(6)
L
# %% [markdown] why name=why
# ## An incident
#
# A flag promised speed: *object reuse*. The team tried it on a Friday; the job ran a fifth faster. On Monday the
# report said that no flight of the whole week had left early. No error, no lost record. One function had set
# negative delays to 0 in the flight it was given, and another function, in another branch, counted those below 0.
#! Ask who would find this in a code review: the two functions stand in two files, and each is right alone. Leave it
#! open; prediction b is this incident.
#
# ## From a graph to tasks
#
# You write operators. What runs are **tasks**: threads with a queue before them. Operators that share a task are a
# **chain**, and call each other; between tasks records travel as bytes, in buffers. This is the flights job of the
# course, as it folds, then with chaining turned off; and as a graph, whose slider goes from what was written to
# the chains and their subtasks.
# %% figure name=fold seeds=O8
from course.figures.chains import eight_outputs, flights_graph, folded, price_of_edges, two_branches, very_late_flights
from widgets import JobView

print(folded(flights_graph()), folded(flights_graph(chaining=False)), sep="\n\n")
JobView(flights_graph(), title="The job of the course")
#! Let them count tasks before the slider moves: six names, but how many threads? 4 with chains, 12 without. Ask at
#! which edge every subtask must reach every other one; that one can never fold.
# %% predict name=predict-a
L.predict("6.a")
#! "Never, it is one process" is the popular one: in one process one could hand over references. Flink does not,
#! between tasks: two threads and one mutable object is the bug of this lesson's incident, only worse.
# %% figure name=price
price_of_edges()
#! Why 4.1 and not 4? The fifth edge carries counts, and only few. Then the column "values copied": who pays it, and
#! for what? Do not answer; the next prediction does.
# %% [markdown] explain name=explain seeds=E2,E18,O8
# ## What may be chained
#
# A chain is a function call, so it works only where a network would change nothing. All of this must hold:
#
# | condition | or else |
# |---|---|
# | chaining is on | somebody wants to see each operator by itself |
# | the downstream operator has **one** input | in whose task would it live? |
# | both are in the same **slot-sharing group** (may share a TaskManager's slot) | the user wants them apart |
# | upstream allows one behind it (not `NEVER`), downstream one before it (`ALWAYS`) | somebody said otherwise |
# | the edge is a **forward** edge | its records go to other subtasks |
# | both have as many subtasks | a task would be missing |
#
# A second *output* is no hindrance: a chain is a tree. The cost: a chain is one thread, so its slowest operator
# holds up all of it, and metrics show one busy task, not which operator.
#
# In Flink: `StreamingJobGraphGenerator.isChainable` (1.11.4; it asks, too, that the edge is not a batch exchange).
# Later versions have one more strategy, for heads with sources.
#
# Back to the table of prices: chained, a flight is serialised once instead of four times. But its value is
# **copied** for each hand-over, unless object reuse is on. Why copy?
# %% predict name=predict-b
L.predict("6.b")
#! Ask for a number, not a letter: 200 flights, 123 early. Who says "about half" thinks of a race between threads;
#! there is one thread here, and it is the same wrong result every day. That is what makes it hard to find.
# %% figure name=branches
print(two_branches(object_reuse=False), two_branches(object_reuse=True), sep="\n\n")
print("\nthe same, with a map that makes a new flight instead:")
two_branches(object_reuse=True, changes=False)
#! From practice: teams that switch reuse on read all their functions for a week first, or forbid setters in the
#! types. The last table is the cheap rule: make a new object, change none you were given, and the flag is safe.
# %% [markdown] text name=outputs seeds=B1,E24,E26,O1,O4,O5,O6
# ## The eight outputs
#
# What an operator emits goes into an **output**: to the next operator of its chain, or to the network. Which class
# that is depends on two things: how many are behind it, and whether objects are reused.
#
# The names are a trap. *Copying* collectors are used when reuse is **on**: then no chained output copies the value,
# so the collector at least gives each branch but the last a **record** of its own, the wrapper with the time in
# it; the value inside is shared. With reuse off every chained output copies, so the collector need not.
#
# And an operator may have several streams: a **side output** has a tag, and records sent to it pass by everyone
# who listens to the main stream. (`split` is gone since Flink 1.12; side outputs do its work.)
#
# Where a chain branches, several of its operators may send to the network, each with a record writer of its own. What
# comes in is for the head alone: `StreamOneInputProcessor` reads it, and `StreamTaskNetworkOutput` calls the head.
# %% figure name=eight seeds=O1,O3,O4,O5,O6
print(eight_outputs(), very_late_flights(), sep="\n\n")
#! Cover the names and let them choose per cell: does anybody have to copy here, and what, the value or the wrapper?
#! The word "Copying" in the right column surprises all; it copies the wrapper only.
# %% [markdown] task name=task-1
# ## Your part, 1: may these two share a task?
#
# - **Given** the graph, one edge of it, and the configuration.
# - **Do** answer True if all six conditions of the table hold. **Done when** `check("6.1")` says so; ten lines.
# - **Then** the job of the course is started again with *your* rule, for the second half of its flights.
# %% exercise id=6.1
#! Six conditions, six lines. The one they forget is HEAD: it may have somebody behind it and nobody before it. Draw
#! the chain and point at "upstream" and "downstream" with two hands.
# %% check name=check-1
check("6.1")
# %% swap name=swap-1
L.swap("6.1")
# %% [markdown] task name=task-2
# ## Your part, 2: the chains
#
# - **Given** the graph, and a function that says of an edge whether its two ends may be chained.
# - **Do** put every operator into a chain, and name each chain after its head. About ten lines.
# - **Start** with one operator; then a line of three; then a branch.
# %% exercise id=6.2
#! Many write "the head is the operator before me". Give them a line of three on paper and ask for the name of the
#! third one's chain. Whoever recurses: who visits an operator that two edges lead to?
# %% check name=check-2
check("6.2")
# %% swap name=swap-2
L.swap("6.2")
# %% [markdown] task name=task-3
# ## Your part, 3: an output that copies
#
# - **Given** the operator behind, the type of the values, and perhaps the tag of a side output.
# - **Do** hand on a *new* record with a *copy* of the value, and let pass by what is not for this output.
# - **Not needed:** watermarks and statuses: the base class has them. About ten lines.
# %% exercise id=6.3
# %% check name=check-3
check("6.3")
# %% swap name=swap-3
L.swap("6.3")
# %% zoo name=zoo
# For each: what would the on-call engineer see, and when? zoo("6.3") and zoo("6.1") are worth a look, too.
zoo("6.2")
#! w02 fails nothing: results are right, the job is only slower, for ever. Ask how anybody would notice (one more
#! task on the page, one more exchange), and why such a bug lives for years.
# %% [markdown] spark name=spark-words
# ## Spark calls it an exchange
#
# Spark plans in the same way: what needs no new distribution of rows runs in one **stage**, and between stages
# stands an **Exchange**. So for the same plan the number of its exchanges should be the number of our edges that
# are not chained. Each query below is one of our jobs; the plan that Spark makes of one of them is printed as our
# jobs were, above. (A `HashAggregate` groups: one before the exchange for what is there, one behind it for the
# whole.) Where do the two differ, and who knows more?
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS
from course.data.sections_jobs import plan_of

QUERIES = {
    "map, filter": "SELECT n FROM (SELECT amount_cents + 1 AS n FROM {rows}) WHERE n > 5",
    "by key": "SELECT user, count(*) FROM {rows} GROUP BY user",
    "by key, then by another": """
        SELECT total, count(*) FROM (SELECT sum(amount_cents) AS total FROM {rows} GROUP BY user) GROUP BY total
    """,
    "dealt out, then map": "SELECT amount_cents + 1 FROM (SELECT /*+ REPARTITION(3) */ * FROM {rows})",
    "by key, then to one": "SELECT max(n) FROM (SELECT count(*) AS n FROM {rows} GROUP BY user)",
}
if spark := spark_or_none():
    rows = SECTIONS[6].frame(spark)
    plans = {name: plan_of(spark.sql(query, rows=rows)) for name, query in QUERIES.items()}
    print("by key, then by another:", plans["by key, then by another"], "", sep="\n")
    print(SECTIONS[6].run(spark, prediction={name: plan.num_exchanges for name, plan in plans.items()}))
#! Let them mark the exchanges in the SQL with a finger before it runs: GROUP BY, and the hint. Then the last line:
#! who is right, Spark with one exchange or we with two? Spark can look into SQL; nobody can look into your lambda.
# %% quiz name=quiz-1
L.quiz("6.q1")
# %% quiz name=quiz-2
L.quiz("6.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You wrote `StreamingJobGraphGenerator.isChainable` and what `createChain` comes to, and a
# `CopyingChainingOutput` (Flink 1.11.4; the outputs are put together in `OperatorChain`). Chaining saves bytes and
# threads where a network would change nothing; a copy keeps branches apart; object reuse saves the copy and makes
# you promise to change nothing you were given.
#
# To read: `refimpl/job/chaining.py`, `refimpl/task/outputs.py` and `collectors.py`, then `refimpl/task/chain.py`.
# %% receipt name=receipt
L.receipt()
