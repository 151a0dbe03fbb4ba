# %% [markdown] title name=title
# # Start here
#
# A distributed stream processor moves records between machines, all day, without losing one and
# without drowning anybody. Here is one at work. Click the next cell and press Shift-Enter. The records are
# flights; each box is a buffer full of them, and the **sink** at the right takes them. Press **Hold it**:
# nobody takes any more. See the queues fill, and the task that writes them stop, though nobody told it to.
# Then **Let it go**.
# %% figure name=live
from course.figures.live import live_start

live_start()
# %% [markdown] text name=course
# How they do that, at every place where it can go wrong, is this course. You watch the processor, take parts of it
# out, write them yourself, and see your part at work in the running job. It is modelled on Apache Flink and
# speaks its protocol; what you learn here holds there.
#
# You need some Python and basic SQL. No network, no account, no Java of your own.
#
# The next cell says whether this machine has what the lessons need.
# %% setup name=machine tags=only-here
from course import start

start.machine()
# %% [markdown] text name=where
# ## Where you stand
#
# Run this cell whenever you come back: it says where you left off. Everything you do is kept in the
# folder of these notebooks, every version of your answers too.
# %% figure name=lessons
start.lessons()
# %% [markdown] text name=how
# ## How a lesson goes
#
# 1. **Something went wrong** in a job, and somebody was on call.
# 2. **You look** at the engine running, and step through it: space plays, ← and → step, `?` tells the rest.
# 3. **You predict** what will happen; your choice is answered, and the next cell shows it. Nobody grades it.
# 4. **You write** a part of the engine in a cell, and `check("3.1")` says what it does right and wrong:
#    what we ran, what yours did, what Flink does, and what a running job would do about it.
# 5. `hint("3.1")` helps in five steps, from a question to the answer. Hints cost nothing.
# 6. `L.swap("3.1")` **puts your part into a running job**, between two buffers.
# 7. `zoo("3.1")` shows parts that others got wrong, and **Spark** works out what the answer must be.
#
# A cell runs with Shift-Enter. A lesson runs from top to bottom; if something seems odd, restart the kernel
# (Kernel, Restart) and run it again from the top.
# %% [markdown] text name=time
# ## How much time you have
#
# All lessons, in order, is the best way. For a workshop, or an evening, there are shorter ones.
# %% figure name=tracks
start.tracks()
# %% [markdown] text name=trouble
# ## When something does not work
#
# | what you see | what it is |
# |---|---|
# | `No module named 'course'` | another Python runs this notebook: Kernel, Change Kernel, Python 3 (Sluice) |
# | the Spark section says *skipped* | Spark did not start; the lesson goes on, `sluice doctor` says why |
# | a picture that does not move | its kernel was restarted: run the cell again |
# | a cell that has run for a minute | Kernel, Interrupt; a check ends by itself |
# | you come late | `sluice catchup 3` in a terminal: our parts stand in for lessons 0 to 2 |
# | you want a lesson as it was | rename yours; the next `make lab` brings a new one |
#
# In a terminal: `sluice --help`. In a workshop: `sluice join CODE@HOST:PORT`, as the projector says.
#
# The words of the course, in English and Chinese, are in the [glossary](glossary.md).
