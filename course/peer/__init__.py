"""One end of a conversation with the real Flink, made of the engine's own parts and called by the same options.

    command        `sluice peer`: the options, the exit status
    records        what is sent: every value follows from its place
    tap            counts and traces frames in front of the stream
    host           the monitor, the threads and the connections of one end
    producing      one partition and its thread
    serving        `sluice peer serve`: partitions, and whoever connects to read them
    reading        one gate and its thread
    process        either end as a process: ours, or Flink's
    with_flink     both conversations of lesson 18, with the Flink of this machine or a recorded one
    consuming      `sluice peer consume`: gates, and the connection they read from

Options, JSON lines and exit status are those of `course/flink/FlinkPeer.java`, so a script that drives one of
the two drives the other.
"""

from course.peer.command import add_arguments, run

__all__ = ["add_arguments", "run"]
