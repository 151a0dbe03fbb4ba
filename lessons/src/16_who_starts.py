# %% [markdown] title name=title
# # Who starts the tasks
#
# **When you are done** you can say who gives a task its place, and what becomes of a job when a process dies.
#
# 60 minutes. You need slots (lesson 8) and checkpoints (lesson 14). What becomes yours: which slot a request
# gets, and a rule that finds wrong pools.
#
# Era: Flink 1.11.
#! A theatre: who knows the plays, who has the seats, who directs tonight's play, who acts? Ask which of the four can be
#! ill this evening without the audience noticing. Keep the answers; the lesson has the same question five times.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(16)
L
# %% [markdown] why name=why seeds=K1,K2
# ## An incident
#
# Ten machines, twelve jobs, Flink 1.4. One user's map kept every word it saw; its process ran out of memory. With
# it went tasks of four other jobs, which found too few slots to begin again. Twenty idle machines stood by, and
# nobody could ask for them.
#
# FLIP-6, the design of 1.5, names six faults: resources fixed at the start; containers all alike; clumsy with
# Docker; a JobManager that schedules no tasks; a web page gone with its job; two ways to deploy that nobody could
# tell apart. A seventh stayed: tasks of several users share a process.
#! Let them sort the causes: which is a bug of the user, which of the cluster? Ask what would help against the last one.
#! Nothing but a cluster for each job; that is why there are several ways to deploy.
# %% [markdown] text name=meet seeds=K3,K4,K5,K7,K18,A23,E28
# ## Four kinds of process
#
# | | one for each | |
# |---|---|---|
# | **Dispatcher** | cluster | takes jobs, stores each before it says yes, has a leader made for it |
# | **ResourceManager** | cluster | knows all slots, and which job has which |
# | **JobMaster** | job | asks for slots, deploys, restarts, takes checkpoints; it alone has the whole graph |
# | **TaskManager** | machine | lends slots, runs tasks, which share its memory and connections |
#
# The first three may be threads of one process, the **JobManager**. Orders and answers go apart from data (Flink:
# Akka, and Netty), so that a channel that is full holds up no order.
#
# Below, all four in virtual time: kill somebody.
# %% figure name=cast seeds=K3,K4,K5
from course.figures import starting
from widgets import ClusterView

ClusterView(starting.running_cluster(), title="Three TaskManagers, a job of two slots")
#! Give them three minutes to kill whom they like. Then ask for the smallest loss that stops the job for good, without
#! reviving anybody. Two TaskManagers; or the JobMaster, for whose return somebody has to care.
# %% predict name=predict-a
L.predict("16.a")
#! Most say the ResourceManager. Ask what happens if its list is a second old, and the slot was given away meanwhile.
# %% figure name=talk seeds=K6,K12,K19,C6,C7,E19
print(starting.slot_talk(), "\n")
print(starting.workers(), "\n")
starting.counts_of_the_graph()
#! First table: cover the third column, they fill it in. Second: find the slot of a new TaskManager, the slot of one
#! that was kept, and the end of one that was kept too long. Third: let them multiply before they look; 4 x 4 queues.
# %% [markdown] explain name=explain seeds=K6,K12,K19
# ## The way of a slot
#
# A request goes by an **allocation id**. The ResourceManager tells a TaskManager for whom its slot is, or has one
# started; one that is idle for 30 s is ended (`SlotManagerImpl`). The TaskManager *offers* the slot to the
# JobMaster. Others may have come meanwhile; so the job's **slot pool** (`SlotPoolImpl`) matches:
#
# | it hears | it does |
# |---|---|
# | request, slots are free | gives the one it had `before`; else one at a TaskManager `near` its inputs; else any |
# | … several are as good | the one that was offered first |
# | request, none is free | it waits |
# | offer | serves the request of the same id, if that waits; else the one that waits longest; else it is free |
# | the same offer again | nothing: its answer was lost |
# | a slot is released | serves the request that waits longest; else it is free, and after 50 s goes back |
# | a request is withdrawn, a slot is gone | forgets it |
#
# So no slot serves two requests, and none is free while a request waits.
# %% [markdown] task name=task-slots
# ## Your part: which slot for which request
#
# - **Given** ids of requests and slots, and names of TaskManagers.
# - **Do** the five methods, as the table and the docstrings say. `request` answers with the id of a *slot*, `offer`
#   and `release` with the id of a *request*; or `None`.
# - **Done when** `check("16.1")` says so. About twenty-five lines.
# - **Start** with one request and one offer, in both orders.
# %% exercise id=16.1
#! Who is stuck draws two columns, slots and requests, with a line between the two that belong together, and plays the
#! example on paper. The two traps: an answer is lost, so an offer comes twice; and a request is served by another slot,
#! so that its own comes later, for nobody.
# %% check name=check-slots
check("16.1")
# %% hint name=hint
hint("16.1")
# %% swap name=swap-slots
L.swap("16.1")
#! Their pool gives the slots away while a TaskManager and then the JobMaster dies. Ask before: how many slots are given
#! in each of the three lines, and why are there more than the job has?
# %% zoo name=zoo-slots
zoo("16.1")
#! For each: who notices, and when? One that hands a slot out twice is found by the second task's memory; one that lets
#! a slot lie idle, only by a job that waits for five minutes.
# %% [markdown] task name=task-rule
# ## Write the rule
#
# - **Given** `new_pool()`, which makes a pool; numbers are its ids.
# - **Do** return `True` for a matching that is right, `False` for a wrong one.
# - **Done when** your rule turns down two of three wrong ones you have never seen, and spares two right ones.
# - **Start** with one slot and two requests.
# %% exercise id=16.2
#! Each row of the table is a promise, and each needs a short story that shows it broken. Most stop one call too early:
#! that a slot serves two is seen by the request that comes after.
# %% check name=check-rule
check("16.2")
# %% swap name=swap-rule
L.swap("16.2")
# %% [markdown] text name=deploy-words seeds=E29,D6,K8,K9,K10,K11,K19
# When all slots are there, all tasks are sent out (*eager*, lesson 8). Otherwise a reader gets to its data in five
# steps: a result is made; the JobMaster hears; it tells the reader, or deploys it; the reader asks; data comes.
#
# ## Three ways to deploy
#
# | | ends | our engine |
# |---|---|---|
# | **session**: many jobs | when told to | `sluice engine start`, `submit` |
# | **per job** | with its job | `sluice engine run` |
# | **containers** | as who runs them likes | `sluice engine serve` |
#
# - *YARN* starts containers when they are needed, as large as needed. Per job there is no Dispatcher, and user code
#   is on the class path.
# - *Mesos* (until 1.13): only with a Dispatcher, which Marathon, say, keeps alive.
# - *Standalone*: somebody starts all; the Dispatcher replaces the old JobManager.
# - *Docker, Kubernetes*: you define containers; at least one is the job's.
#
# ## Who is there, who leads?
#
# Who hears of a new leader **registers** with it: asks at once, after 100 ms, 200 ms, up to 30 s. TaskManagers do so
# with the ResourceManager, and with JobMasters whose slots they have; JobMasters with the ResourceManager. Then
# **heartbeats** every 10 s say what each believes; who is silent for 50 s is gone.
#
# Each leadership has a token (here a number, the **epoch**), and each message names one. What is of, or for, a
# former leader is refused: **fencing**.
# %% predict name=predict-b
L.predict("16.b")
#! Ask the groups of a and c what each thinks happens to the next checkpoint. Without a JobMaster nobody triggers it.
# %% figure name=five seeds=K13,K14,K15,K16,K17
starting.five_failures()
#! Row by row: which members had to be told? The last column is lesson 14. Ask why "counted again" is not 0 where all is
#! well in the end, and why one of two slots is kept in rows 1 and 5.
# %% [markdown] text name=losses seeds=K13,K14,K15,K16,K17
# ## Five failures
#
# | lost | tasks | slots | who registers anew |
# |---|---|---|---|
# | 1 TaskManager | begin again | its own are gone; the job's free ones, or new ones | – |
# | 2 ResourceManager | **go on** | as they are | TaskManagers, with whose their slots are; JobMasters, with requests |
# | 3 JobMaster | end, begin again | kept 10 s, offered to the next | TaskManagers with it, it with a ResourceManager |
# | 4 both of these | as 3 | as 3; told to the next ResourceManager as the job's | all |
# | 5 TaskManager, ResourceManager | end, **wait** | gone; asked of the next | as 2 |
#
# Tasks begin again from the newest complete checkpoint. A lost Dispatcher ends no job: the next finds all in its
# store.
#
# FLIP-6 has a job **change its scale** where slots run short. In Flink 1.11 and our engine it waits; five minutes
# later that is one failure more. The adaptive scheduler of 1.13 does. By hand: savepoint, restore with fewer subtasks.
# %% figure name=steps seeds=K13,K14,K15,K16,K17
print(starting.too_few_slots(), "\n")
ClusterView(starting.failure(5), title="Failure 5", at=8)
#! Stop where the job waits: whom can it ask? Then failure(3): find the slots that are "given to" a job which nobody
#! leads, and the moment they are offered.
# %% figure name=fence seeds=K3
ClusterView(starting.old_leader(), title="A JobMaster was paused, replaced, and goes on")
#! Scrub: where is the moment at which two believe to lead? Which line says that it does no harm, and to whom?
# %% [markdown] spark name=spark-words
# ## And Spark?
#
# | Flink | Spark |
# |---|---|
# | JobMaster | **driver**, your own program; the application ends with it |
# | ResourceManager | **cluster manager**: YARN, Kubernetes, Spark's own master |
# | TaskManager, of all jobs | **executor**, of one application |
# | slot: a task of each step, while the job runs | core: one task after the other |
#
# What a lost executor had shuffled others compute again.
#
# **Spark** finds in the logs of five clusters how long each job was not whole.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    SECTIONS[16].frame(spark).createOrReplaceTempView("losses")
    found = spark.sql("""
        SELECT failure, seed, coalesce(
            max(time_ms) FILTER (WHERE event = 'begins') - min(time_ms) FILTER (WHERE event = 'loss'), 0) AS took_ms
        FROM losses GROUP BY failure, seed ORDER BY failure""").collect()
    prediction = {f"failure {row.failure}, cluster {row.seed}: ms": round(row.took_ms, 2) for row in found}
    print(SECTIONS[16].run(spark, prediction=prediction))
#! Real clusters add what virtual ones do not have: up to 50 s until a silent one counts as gone. Ask which of the five
#! a shorter heartbeat would help, and what it costs when a machine is only slow.
# %% quiz name=quiz-1
L.quiz("16.q1")
# %% quiz name=quiz-2
L.quiz("16.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# A cluster is four kinds of process; none keeps another alive. Each finds out who is there from who registers, and
# keeps what it has for whoever leads next.
#
# To read: `refimpl/cluster/slot_table.py`, `fencing.py` and `course/site/cluster.md`.
# Outside: FLIP-6; on scale FLIP-159 and FLIP-160.
#! Back to the incident: which of its losses would still happen today? The four other jobs' tasks, in a session. Let
#! them say what they would deploy instead, and what that costs: a start of processes for each job.
# %% receipt name=receipt
L.receipt()
