"""A cluster that many jobs share, with real tasks: in one process, or in many that speak over TCP.

The way in is `MiniCluster`, with its members as threads of this process, or `ClusterProcesses`, with a process for
each; a `ClusterClient` submits jobs and asks how they are. What members decide stands in `refimpl.cluster`, where
nobody waits or reads a clock; here are the threads, the sockets and the files. In the order to read it:

    rpc/                how two processes speak: each end proves that it knows the secret, then envelopes cross in JSON
    high_availability/  what outlives a process: who leads, and on disk leases, jobs and the secret
    tasks/              what a TaskManager does for a job: the place it has there, its attempts as real tasks
    components/         TaskManager, ResourceManager, JobMaster and Dispatcher, and the thread that they live on
    client              who asks the Dispatcher, whoever that is at the moment
    mini_cluster        the whole in one process
    processes/          the whole in processes: what each runs, who replaces it when it dies, and who ends it

How a job comes from its client to its tasks:

    Client       → Dispatcher       the pickled job, which is stored before the answer
    Dispatcher                      leads the job from here on: a JobMaster lives in its process
    JobMaster    → ResourceManager  wishes for slots
    TaskManager  → JobMaster        offers slots
    JobMaster    → TaskManager      the attempts of a region
    TaskManager  ↔ JobMaster        `NeedJob` and `JobCopy`; `Listening` when they are made; `Connect` when all are
    TaskManager  ↔ TaskManager      records, over the `transport` of all drivers
"""

from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.mini_cluster import MiniCluster
from refimpl.drivers.cluster.processes.cluster_processes import ClusterProcesses

__all__ = ["ClusterClient", "ClusterProcesses", "MiniCluster"]
