# %% [markdown] title name=title
# # Who starts the tasks
#
# **When you are done** you can say who gives a task its place, what each process of a cluster knows, and what
# becomes of a job when any of them dies.
#
# 60 minutes. You need slots (lesson 8) and checkpoints (lesson 14).
#
# Era: Flink 1.11. What 1.4, 1.13 and later do otherwise is said.
#! A theatre: who knows the plays, who has the seats, who directs tonight's play, who acts? Ask which of the four can be
#! ill this evening without the audience noticing. Keep the answers; the lesson has the same question five times.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(16)
L
# %% [markdown] why name=why seeds=K1,K2
# ## An incident
#
# Ten machines, twelve jobs, Flink 1.4. One user's map kept every word it saw, and its process ran out of memory.
# With it went tasks of four other jobs. They began again, found too few slots, and failed; twenty idle machines
# stood by, and nobody could ask for them. In the end the one process that led everything was restarted, and all
# jobs with it.
#
# FLIP-6, the design of Flink 1.5, names what was wrong: resources fixed at the start; containers all alike; clumsy
# with Docker; a JobManager that could schedule no tasks by itself; a web page gone with its job; two ways to deploy
# that nobody could tell apart. One fault is still there: tasks of several users share a process.
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
# | **TaskManager** | machine | lends slots and runs tasks, which share its memory and its connections |
#
# The first three may be threads of one process, the **JobManager**. What they tell one another are calls, apart
# from the connections of data, so that a full one holds up no order (Flink: Akka, and Netty).
#
# Below, all four in virtual time. Step it; then kill somebody.
# %% figure name=cast seeds=K3,K4,K5
from course.figures.starting import counts_of_the_graph, failure, five_failures, old_leader, running_cluster
from course.figures.starting import slot_talk, too_few_slots, workers
from widgets import ClusterView

ClusterView(running_cluster(), title="Three TaskManagers, a job of two slots")
#! Give them three minutes to kill whom they like. Then ask for the smallest loss that stops the job for good, without
#! reviving anybody. Two TaskManagers; or the JobMaster, for whose return somebody has to care.
# %% predict name=predict-a
L.predict("16.a")
#! Most say the ResourceManager. Ask what happens if its list is a second old, and the slot was given away meanwhile.
# %% figure name=talk seeds=K6,K12,K19,C6,C7,E19
print(slot_talk(), "\n")
print(workers(), "\n")
counts_of_the_graph()
#! First table: cover the third column, they fill it in. Second: find the slot of a new TaskManager, the slot of one that
#! was kept, and the end of one that was kept too long. Third: let them multiply before they look; 4 x 4 queues.
# %% [markdown] explain name=explain seeds=K6,K12,K19,E29,D6
# ## The way of a slot
#
# A request goes by an **allocation id**. The ResourceManager asks a TaskManager that has a free slot, or has one
# started, where it can, as large as is needed (Flink: `SlotManagerImpl`); one that was idle for 30 s is ended. The
# TaskManager *offers* the slot. It belongs to the job when the JobMaster has taken it. Meanwhile another slot may
# have come; so the JobMaster's **slot pool** (`SlotPoolImpl`) matches:
#
# | it hears | it does |
# |---|---|
# | request | gives the free slot that served the same task before; else one at a TaskManager near its inputs; else any; of equals the first offered. None is free: the request waits |
# | offer | serves the request of the same id, if that waits; else the one that waits longest; else the slot is free |
# | the same offer again | nothing: its answer was lost |
# | a slot is released | serves the request that waits longest; else it is free, and after 50 s goes back |
# | a request is withdrawn, a slot is gone | forgets it |
#
# So no slot serves two requests, and none is free while a request waits.
#
# All slots there, all tasks are sent out: a streaming job starts eagerly (lesson 8). Where results come first, a
# reader finds one in five steps: it is made; the JobMaster hears; it tells the reader, or deploys it; the reader
# asks; data comes.
# %% [markdown] text name=deploy-words seeds=K8,K9,K10,K11
# ## Three ways to deploy
#
# | | ends | our engine |
# |---|---|---|
# | **session**: a Dispatcher, many jobs | when told to | `sluice engine start`, `submit` |
# | **per job** | with its job | `sluice engine run` |
# | **containers** | when who runs them says so | `sluice engine serve` |
#
# - *YARN* starts containers as they are asked for. Per job, no Dispatcher is needed, and user code is simply on the
#   class path.
# - *Mesos* (until 1.13): only with a Dispatcher, which Marathon, say, must keep alive.
# - *Standalone*: somebody starts all; the Dispatcher has the old JobManager's place.
# - *Docker, Kubernetes*: you define the containers; at least one is of the job.
#
# ## Who is there, who leads?
#
# Who hears of a new leader **registers** with it: at once, after 100 ms, 200 ms, and so on up to 30 s. TaskManagers do
# with the ResourceManager, and with each JobMaster whose slots they have; JobMasters with the ResourceManager; nobody with
# the Dispatcher. Then **heartbeats** go to and fro every 10 s, with what each believes; 50 s of silence, and one is gone.
#
# Each leadership has a token (here a number, the **epoch**), each message names one. What is of a former leader, or
# for it, is refused: **fencing**.
# %% predict name=predict-b
L.predict("16.b")
#! Ask the groups of a and c what each thinks happens to the next checkpoint. Without a JobMaster nobody triggers it.
# %% figure name=five seeds=K13,K14,K15,K16,K17
five_failures()
#! Row by row: which members had to be told? The last column is lesson 14. Ask why "counted again" is not 0 where all is
#! well in the end, and why one of two slots is kept in rows 1 and 5.
# %% [markdown] text name=losses seeds=K13,K14,K15,K16,K17
# ## Five failures
#
# | lost | tasks | slots | who registers anew |
# |---|---|---|---|
# | 1 TaskManager | end, begin again | its own are gone; free ones, else the ResourceManager's | – |
# | 2 ResourceManager | **go on** | as they are | TaskManagers, *saying whose their slots are*; JobMasters, *asking again for what they wait for* |
# | 3 JobMaster | end, begin again | kept 10 s for the next one, and offered to it | TaskManagers with the new JobMaster, it with the ResourceManager |
# | 4 both of these | as 3 | as 3; the new ResourceManager hears that they are the job's | all |
# | 5 TaskManager, ResourceManager | end, **wait** | its own are gone; asked of the next one | as 2 |
#
# Begun again is always from the newest complete checkpoint. Kept too long, a slot is free, and the
# ResourceManager hears so.
#
# FLIP-6 lets a job **change its scale** in 1 and 5, where slots run short. Flink 1.11 does not, nor does our
# engine: it waits, and after five minutes that is one failure more (below). The adaptive scheduler of 1.13 does. By
# hand: take a savepoint, restore with fewer subtasks.
#
# Last, a JobMaster that was paused, and comes back.
# %% figure name=steps seeds=K13,K15,K17
print(too_few_slots(), "\n")
print(ClusterView(failure(5), title="Failure 5", at=8), "\n")
ClusterView(old_leader(), title="Two who believe to lead the job")
#! Scrub: where is the moment at which two lead? Which line says that it does no harm? Then put failure(3) in place of
#! failure(5) and find the slots that are "given to" a job which nobody leads.
# %% [markdown] spark name=spark-words
# ## And Spark?
#
# | Flink | Spark |
# |---|---|
# | JobMaster | **driver**, which is your own program; dies it, the application is over |
# | ResourceManager | **cluster manager**: YARN, Kubernetes, Spark's own master |
# | TaskManager, of all jobs | **executor**, of one application |
# | slot: one task of each step, for as long as the job runs | core: one task after the other |
#
# A lost executor costs the tasks that ran there, and shuffled data if it lay there: others compute them again. Nothing
# else stops, as no task waits for another's pipe.
#
# Here Spark reads the log of five clusters of ours, and finds how long each was not whole.
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
#! Real clusters add what virtual ones do not have: up to 50 s until a silent one counts as gone. Ask which of the five a
#! shorter heartbeat would help, and what it costs when a machine is only slow.
# %% quiz name=quiz-1
L.quiz("16.q1")
# %% quiz name=quiz-2
L.quiz("16.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# A cluster is four kinds of process, none of which keeps another alive. Each finds out who is there from who
# registers and goes on talking; who has lost its leader keeps what it has, for a while, for the next.
#
# To read: `refimpl/cluster/slot_pool.py`, `slot_table.py`, `fencing.py`, and the [page of the
# cluster](../course/site/cluster.md). Outside: FLIP-6; for scale FLIP-159 and FLIP-160.
#! Back to the incident: which of its losses would still happen today? The four other jobs' tasks, in a session. Let
#! them say what they would deploy instead, and what that costs: a start of processes for each job.
# %% receipt name=receipt
L.receipt()
