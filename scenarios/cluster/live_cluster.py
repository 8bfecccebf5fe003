"""State of a real cluster without its wires: jobs, nodes, what is to be stored and told.

Nothing here waits or speaks: `scenarios.cluster.service` hands in reports and times, writes what
`take_changes` gives, and sends orders.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from des.cluster.policy import Policy
from scenarios.cluster.job_state import JobState, queued_job
from scenarios.cluster.messages import JobForm, message_text, read_own
from scenarios.cluster.node_state import Contact, NodeState, Presence


@dataclass(slots=True, kw_only=True)
class LiveCluster:
    """State of a cluster; all times are in s since its beginning.

    Attributes
    ----------
    lease_s
        Time without a report after which a node is taken for lost. [s]
    grace_s
        Time in which ranks that are told to leave must have left. [s]
    wants_decision
        Whether something has happened about which the policy should decide.
    """

    policy: Policy
    lease_s: float = 60.0
    grace_s: float = 60.0
    jobs: dict[int, JobState] = field(default_factory=dict)
    nodes: dict[str, NodeState] = field(default_factory=dict)
    contacts: dict[str, Contact] = field(default_factory=dict)
    wants_decision: bool = False
    _placed: dict[str, set[int]] = field(default_factory=dict)
    _nodes_of: dict[int, set[str]] = field(default_factory=dict)
    _starting: set[int] = field(default_factory=set)
    _looked_at: set[str] = field(default_factory=set)
    _changed: dict[str, None] = field(default_factory=dict)
    _news: list[str] = field(default_factory=list)

    def restore(self, stored: Mapping[str, str]) -> float:
        """Take up a stored state and return the latest time in it.

        Raises
        ------
        ValueError
            If it is damaged, naming the key.
        """
        for key, text in stored.items():
            if key.startswith("job/"):
                job = read_own(JobState, text, key)
                self.jobs[job.job_id] = job
            elif key.startswith("node/"):
                node = read_own(NodeState, text, key)
                self.nodes[node.name] = node
        self.jobs = dict(sorted(self.jobs.items()))
        for job in self.jobs.values():
            self.note_places(job)
        self.wants_decision = True
        return max((job.latest_s() for job in self.jobs.values()), default=0.0)

    def await_reports(self, now_s: float) -> None:
        """Give all nodes a lease from now on."""
        self.contacts = {name: Contact(now_s) for name in self.nodes}

    def take_changes(self) -> tuple[dict[str, str], list[str], set[str]]:
        """Take what is new since the last call.

        Returns
        -------
        changes
            Texts to be stored, by key.
        news
            What happened, in words.
        nodes
            Those that may have other orders now.
        """
        changes, nodes = dict[str, str](), set[str]()
        for key in self._changed:
            kind, _, name = key.partition("/")
            value = self.jobs[int(name)] if kind == "job" else self.nodes[name]
            changes[key] = message_text(value).decode()
            if isinstance(value, JobState):
                nodes |= self._nodes_of.get(value.job_id, set())
                self.note_places(value)
            else:
                nodes.add(name)
        news = self._news
        self._changed, self._news = {}, []
        return changes, news, nodes

    def note_places(self, job: JobState) -> None:
        """Remember the nodes of a job's launches, and whether one is to start."""
        nodes = {rank.node for launch in job.launches_held() for rank in launch.ranks}
        for name in self._nodes_of.get(job.job_id, set()) - nodes:
            self._placed[name].discard(job.job_id)
        for name in nodes:
            self._placed.setdefault(name, set()).add(job.job_id)
        self._nodes_of[job.job_id] = nodes
        if job.current is not None and job.current.phase == "reserved":
            self._starting.add(job.job_id)
            self._looked_at |= nodes

    def jobs_on(self, name: str) -> Iterator[JobState]:
        """Jobs that have, or had until a change, a launch on a node, in their order."""
        return (self.jobs[job_id] for job_id in sorted(self._placed.get(name, ())))

    def say(self, text: str) -> None:
        """Tell what happened."""
        self._news.append(text)

    def touch(self, job: JobState) -> None:
        """Store a job with the next write."""
        self._changed[f"job/{job.job_id}"] = None
        self._looked_at |= self._nodes_of.get(job.job_id, set())

    def look_at(self, name: str) -> None:
        """Look with the next start whether launches on a node may start."""
        self._looked_at.add(name)

    def live_jobs(self) -> Iterator[JobState]:
        """Jobs that have not ended."""
        return (job for job in self.jobs.values() if not job.has_ended)

    # Wishes

    def submit(self, form: JobForm, now_s: float) -> int:
        """Take a job and return its number.

        Raises
        ------
        ValueError
            If the job is wrong.
        """
        job_id = max(self.jobs, default=0) + 1
        queued_job(job_id, form, now_s)
        job = JobState(job_id=job_id, form=form, submitted_s=now_s)
        message_text(job)  # what cannot be stored is refused before it is known
        self.jobs[job_id] = job
        self.touch(job)
        self.say(f"job {job_id} submitted: {form.num_gpus} GPUs")
        self.wants_decision = True
        return job_id

    def cancel(self, job_id: int, now_s: float) -> None:
        """End a job.

        Raises
        ------
        ValueError
            If there is none of this number, or it has ended.
        """
        job = self.jobs.get(job_id)
        if job is None or job.has_ended:
            state = "no job of this number" if job is None else job.state
            raise ValueError(f"job {job_id}: must be waiting or running, got {state}")
        job.end("cancelled", "", now_s)
        self.touch(job)
        self.say(f"job {job_id} cancelled")
        self.wants_decision = True

    def drain(self, name: str, *, takes_jobs: bool) -> None:
        """Let a node take no more jobs, or jobs again; those that it has stay.

        Raises
        ------
        ValueError
            If there is no such node.
        """
        if name not in self.nodes:
            known = ", ".join(self.nodes) or "none"
            raise ValueError(f"node {name}: must be a node of the cluster ({known})")
        self.nodes[name].is_drained = not takes_jobs
        self._changed[f"node/{name}"] = None
        self.say(f"node {name} takes {'jobs again' if takes_jobs else 'no more jobs'}")
        self.wants_decision = True

    # Decisions

    def can_preempt(self) -> bool:
        """Whether time alone may change a decision: jobs wait while others run."""
        ordering, preempting = self.policy.ordering, self.policy.preempting
        moves = preempting is not None and preempting.moves
        runs = {job.current is not None for job in self.live_jobs()}
        return (ordering.preempts or ordering.changes or moves) and len(runs) == 2

    def start_ready(self, now_s: float) -> None:
        """Start launches whose GPUs are free by now, on nodes of which there is news."""
        names, self._looked_at = self._looked_at, set()
        placed = set[int]().union(*(self._placed.get(name, ()) for name in names))
        taken: dict[str, set[int]] = {}
        for job in [self.jobs[job_id] for job_id in sorted(placed & self._starting)]:
            launch = job.current
            if launch is None or launch.phase != "reserved" or job.has_ended:
                self._starting.discard(job.job_id)
                continue
            first = launch.ranks[0].node
            if job.old is not None or not self.contacts[first].free_ports:
                continue  # that node has not reported since the scheduler, or other jobs, started
            for name in {rank.node for rank in launch.ranks} - taken.keys():
                taken[name] = self._find_taken_gpus(name)
            if any(rank.gpu in taken[rank.node] for rank in launch.ranks):
                continue
            self._starting.discard(job.job_id)
            launch.phase, job.state = "running", "running"
            launch.master_address = self.nodes[first].address
            launch.master_port = self.contacts[first].free_ports.pop()
            for rank in launch.ranks:
                rank.incarnation = self.nodes[rank.node].incarnation
            launch.started_s = now_s
            self.touch(job)
            self.say(f"job {job.job_id} starts on {launch.gpus_text()}")

    def _find_taken_gpus(self, name: str) -> set[int]:
        """GPUs of a node that ranks are on."""
        return {
            rank.gpu
            for job in self.jobs_on(name)
            for launch in job.on_gpus()
            for rank in launch.ranks
            if rank.node == name and not rank.has_ended
        }

    # Jobs that leave, nodes that come and go

    def suspend(self, job: JobState, now_s: float) -> None:
        """Take a job's GPUs; its ranks are held, and leave after the last iteration begun."""
        launch = job.give_up_current(now_s)
        self.touch(job)
        self.wants_decision = True
        if launch is not None:
            launch.phase, job.state = "held", "waiting"
            job.suspensions += 1
            self.say(f"job {job.job_id} is to leave {launch.gpus_text()}")

    def next_expiry_s(self) -> float | None:
        """Time at which the next node is lost if it does not report. [s]"""
        times = [self.contacts[name].at_s for name, node in self.nodes.items() if node.is_there]
        return min(times) + self.lease_s if times else None

    def set_presence(self, node: NodeState, presence: Presence, why: str) -> None:
        """Note that a node joins, leaves or is lost, and tell why."""
        node.presence = presence
        self._changed[f"node/{node.name}"] = None
        self.wants_decision = True
        self.say(f"node {node.name} {why}")
