"""Sluice's engine: how Apache Flink moves data, as a program to read.

Read the packages in this order; it is the order in which a record travels, and each package
imports only the ones above it:

    errors, config, trace   what can go wrong, every size and limit (words of batch_options too), what happened
    transitions             state machines as tables (all of them are drawn in STATES.md)
    memory/                 bytes have a home: segments, buffers, pools
    records/                a record becomes bytes: types, elements, events, spanning
    producer/               bytes wait: selectors, subpartitions, the record writer
    exchange/               bytes travel: frames, credit, the ends of a connection
    consumer/               bytes arrive: channels, the gate, bytes become elements again
    state/                  what outlives a failure: state by key, its bytes, where they are kept
    task/                   records are processed: operators, outputs, chains, tasks
    job/                    what the user wants: streams, graphs, chaining, deployment
    checkpoint/             one cut of the whole job: what may start, what counts, what is kept
    cluster/                who decides for a job: who leads, who lives, who has a slot, what begins again
    laws/                   what every run keeps, a file for each law
    invariants              all of them, checked on a whole system
    shortcuts/              the same bytes with less work: read last, deleted without loss
    drivers/                somebody runs it: a simulation to step through, threads, processes, Spark
    rivals/                 how others push back, and a race of all of them with the engine

The core never blocks, never locks and never reads a clock. It follows Flink 1.11.4 where Flink's
versions differ, unless a docstring names another version.
"""
