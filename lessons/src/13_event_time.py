# %% [markdown] title name=title
# # Event time
#
# **When you are done** you can say what time it is in a stream, who decides it, and what becomes of a
# record that comes after its time.
#
# 60 minutes. You need lesson 0 and channels (lesson 7). The parts that become yours: the one that says how
# far time has come at a source, and the one that puts the times of many channels together.
#
# Era: Flink 1.11. The rules are the same in 2.x, where `StreamStatus` is called `WatermarkStatus`.
#! Ask before anything else: what time is it? Then: and in a job that reads last week's data? Let them argue for two
#! minutes. Write "the clock on the wall", "the time in the record", "the newest record" on the board; all come back.
# %% setup name=setup
from course import check, hint, lesson, reveal, show, zoo

L = lesson(13)
L
# %% [markdown] why name=why
# ## An incident
#
# A job counted departures per airport and hour. At midnight its dashboard stopped. No failure, no full queue:
# records came in all night, and not one count came out. At six in the morning the first flight left
# LaGuardia, and within a second seven hours of counts appeared, for *all* airports.
#
# And accounting complained: each month the sums were two percent too small.
#! Two faults, one cause: nobody could say which of the records had "all come". Let them bet on each separately. The
#! first is a channel that says nothing, the second a job that did not wait long enough. Neither leaves a log line.
# %% [markdown] text name=meet seeds=I4
# ## Three times
#
# A flight was due at 9:51, left at 10:25, and is counted at 10:26. For a record that is
#
# - **event time**: when it happened. It stands in the record, and is the same whenever one asks.
# - **ingestion time**: the clock at the source, when the record came into the stream.
# - **processing time**: the clock of whoever works on it at this moment.
#
# Counts per hour of *event* time come out the same on a slow day, on a fast machine, and in a year. But who
# counts needs to know when an hour is complete. The hour's container, in which its records are gathered, is a
# **window**; its count comes out when the window closes.
#
# Below, ninety real flights of New Year's Day 2013, each where it was due and when it came.
# %% figure name=arrivals
from course.figures.times import arrivals, closings, elements_on_the_wire, quiet_airport, told_to_the_valve

arrivals(bound_min=30)
#! Cover the line first. Ask where 9:00 to 10:00 is complete: look along the dotted lines. Somebody finds the flight of
#! 9:00 that came at 11:14. So: never; and yet the count must come out. That is the trade-off, before the word for it.
# %% [markdown] text name=look seeds=I5,I8
# The line is a **watermark**: a promise, sent along in the stream, that nothing at or before its time comes any
# more. It runs behind the largest time so far by a **bound**, here 30 minutes. A flight below the line breaks
# the promise. If its window is closed it is **late** and left out; else nothing happens.
#
# Now six records, with times 7, 11, 9, 12, 17, 15, and windows that are one step long.
# %% predict name=predict-a
L.predict("13.a")
#! Who says "9 only" believes that a bound is about how many records were overtaken. It is about time: 15 comes two
#! behind 17, as 9 does behind 11.
# %% figure name=closings seeds=I5,I6,I8
closings([7, 11, 9, 12, 17, 15], bounds=(0, 1, 2))
#! Read the row of bound 1 aloud: when 9 comes, W says 9, "nothing at or before 9". With bound 2 it says 8. One step
#! makes the difference: the "less one" they will have to write. Ask what bound 2 costs: each result is later.
# %% [markdown] explain name=explain seeds=I9
# ## How far time has come
#
# | | |
# |---|---|
# | watermark | largest time seen − bound − 1 |
# | it goes out | when somebody asks, and only if it is larger than the last |
# | it closes | each window whose last millisecond it has reached |
# | late | a record whose window is closed: left out, or kept apart |
#
# Why less one? A record *exactly* one bound behind the largest is within the bound; it may still come.
#
# A small bound gives results soon and loses records; a large one loses none, waits, and keeps more windows open.
# There is no right number, only a price (Akidau and others, *The Dataflow Model*, 2015).
#
# A watermark travels between records, through the same buffers, and overtakes none. Its bytes are below, after
# those of two records. Records need not carry a time.
#
# Who says watermarks is a *generator*. In Flink 1.11.4 `BoundedOutOfOrdernessWatermarks` is one;
# `TimestampsAndWatermarksOperator` asks it every 200 ms of processing time
# (`pipeline.auto-watermark-interval`). One that answers at a record instead is *punctuated*. Times are in
# milliseconds since 1970, in a `long`: Java's whole number of 64 bits. `StreamElementSerializer` writes the bytes.
# %% figure name=bytes seeds=B12,B13,B14
elements_on_the_wire()
# %% [markdown] task name=task-generator
# ## Your first part: who says it
#
# - **Given** each record's event time, and now and then a question.
# - **Do** `on_event` and `on_periodic_emit`, as the docstring says.
# - **Not needed:** windows, late records, other channels.
# - **Done when** `check("13.1")` says so. About six lines.
# - **Start** with what must be remembered; then think of the time before the first record.
# %% exercise id=13.1
#! They write `self.max = 0`. Ask for a record of 1969. Then they write MIN_TIMESTAMP and take the bound off: below the
#! least long, which Java answers with the far future. Flink begins at MIN + bound + 1 for this very reason.
# %% check name=check-generator
check("13.1")
# %% hint name=hint
hint("13.1")
# %% swap name=swap-generator
L.swap("13.1")
# %% zoo name=zoo-generator
zoo("13.1")
#! For each specimen: what does on-call see? "No bound" and "at the bound" are the accountants' two percent, once large
#! and once so small that nobody ever finds it.
# %% [markdown] text name=many-words seeds=B15,I7,O2
# ## Many channels, one time
#
# A task that counts reads several channels: here one from each airport's source. What time is it *there*?
# LaGuardia's source stands still, as at night. Step through it, and watch who holds the task back. (Times are
# in ms since 1970.)
#
# Each output keeps the last watermark that left it, for the dashboard. A source may also send *latency markers*
# (`metrics.latency.interval`): the time it was there, and who sent it. Whoever gets one adds its age to a histogram, so
# one sees how long records take.
# %% figure name=quiet
from widgets import WatermarkView

WatermarkView(quiet_airport(), title="Three airports, LaGuardia is asleep", at=35)
#! This is the incident. Two channels are at the end of their flights, the third has said nothing, and the task's own
#! time is "none yet". Ask what the task could do by itself. Nothing: it cannot know if LaGuardia is slow or asleep.
# %% predict name=predict-b
L.predict("13.b")
# %% figure name=valve seeds=I7
told_to_the_valve("0 at 10", "1 at 13", "2 at 8", "2 idle", "2 active", "0 at 20", "2 at 12", "1 at 25", "2 at 22")
#! Cover the last column and go down line by line. The two that go wrong are "2 idle", where a status makes a watermark
#! go out, and "1 at 25", where the channel at 12 is active and does not count.
# %% [markdown] task name=task-valve seeds=E25
# ## Your second part: the valve
#
# The least of all channels counts, since the slowest may still bring its old records. A task with two inputs
# (`connect`) has a valve for each, and again the lesser counts. A source that has had no
# record for a while (`withIdleness`) says that it is **idle**: do not wait for me. When it is back it may be far
# behind. Time does not go back, so the channel has to catch up first.
#
# - **Given** what each channel says: watermarks and statuses.
# - **Do** the three methods, as the docstring says.
# - **Done when** `check("13.2")` says so. About twenty-five lines.
# - **Start** with the least of all; then let one be idle; then all; then let them come back.
# %% exercise id=13.2
#! The trap is the return. "It counts again" and "time does not go back" together stop the clock for everybody; only "it
#! counts when it has caught up" lets the others go on. Who is stuck draws one line per channel and a mark for the last.
# %% check name=check-valve
check("13.2")
# %% swap name=swap-valve
L.swap("13.2", driver="threads")
# %% zoo name=zoo-valve
zoo("13.2")
# %% [markdown] spark name=spark-words
# ## How many are late?
#
# A thousand real flights, hourly windows. **Spark** finds the late ones with a plain query: for each flight the
# largest time of those *before* it, and whether its hour had ended a whole bound before that. Then the engine
# counts what its windows left out.
#
# Spark has watermarks too (`withWatermark`). There it is one number for the whole query, and moves after each
# **micro-batch**, a small table of what came in the meantime. So what is late depends on how the records
# were cut into batches; in one batch nothing is.
# %% spark name=spark
from course.data.optional import spark_or_none
from course.data.sections import SECTIONS

if spark := spark_or_none():
    from course.data.watermarks import late_records

    SECTIONS[13].frame(spark).createOrReplaceTempView("flights")
    asked = """
        WITH seen AS (
            SELECT event_time_ms div 3600000 * 3600000 + 3600000 AS hour_end, max(event_time_ms) OVER (
                ORDER BY arrival_ms, event_time_ms, carrier, flight, origin, dest, tailnum
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newest
            FROM flights)
        SELECT count_if(hour_end <= newest - {bound} * 60000) FROM seen"""
    prediction = {f"bound {bound} min": spark.sql(asked.format(bound=bound)).first()[0] for bound in (0, 30, 60, 120)}
    print(SECTIONS[13].run(spark, prediction=prediction), "\n")
    print(late_records(spark, 300, bounds_min=(0,), num_batches=(8, 1)))
#! Ask for the bound at which nothing is late: the data say more than twenty hours. Then for the one they would choose.
#! The second table settles another question: "exactly the same query" on Spark and here need not drop the same records.
# %% quiz name=quiz-1
L.quiz("13.q1")
# %% quiz name=quiz-2
L.quiz("13.q2")
# %% [markdown] recap name=recap
# ## What you have now
#
# You built both ends of event time. In Flink 1.11.4 they are `BoundedOutOfOrdernessWatermarks` and
# `StatusWatermarkValve`. A watermark is a promise about what will not come; the least promise counts; who
# promises nothing must at least say that it is idle.
#
# To read: `refimpl/task/watermarks.py`, where idleness is found out too, `refimpl/consumer/watermark_valve.py`,
# and for two inputs (`connect`) `two_input_valve.py`. Outside: Akidau, *Streaming 101* (2015).
#! Go back to the incident. Which single setting would have brought the night's counts? with_idleness. And the two
#! percent? A larger bound, or the side output for late records. Ask what each costs.
# %% receipt name=receipt
L.receipt()
