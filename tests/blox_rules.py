"""A second reading of the rules of Blox, by plain lists; nothing of the engine is called.

The rules are written in each recorded case; what Blox itself made of those cases proves this.
"""

STARVES_AFTER_S = 3_600_000
KEYS = {
    "fifo": lambda job, _: job.arrival_s,
    "las": lambda _, got_s: got_s,
    "srtf": lambda job, got_s: job.duration_s - got_s,
    "optimus": lambda job, got_s: job.duration_s - got_s,
}


class BloxReading:
    """A case, round by round; ``promoted`` holds the numbers of jobs that go before others."""

    def __init__(self, case):
        self.case, self.now = case, 0
        self.node_of, self.free = [], set()
        self.to_join, self.to_come, self.arrived = list(case.cluster.nodes), list(case.jobs), []
        self.live, self.held, self.promoted = [], {}, set()
        self.got_s = dict.fromkeys((job.id for job in case.jobs), 0)
        self.credits = dict(self.got_s)
        self.waits_s = dict(self.got_s)
        self.rows = {job.id: {"id": job.id, "launches": 0, "suspensions": 0} for job in case.jobs}
        self.series = []

    def expected(self):
        """Figures of all rounds until the last tracked job has ended."""
        first, last = self.case.tracked_ids
        rows = [self.rows[number] for number in range(first, last + 1)]
        while True:
            self.round()
            if all("finish_s" in row for row in rows):
                break
            self.now += self.case.round_s
        return {
            "avg_jct_s": sum(row["jct_s"] for row in rows) / len(rows),
            "avg_responsiveness_s": sum(row["responsiveness_s"] for row in rows) / len(rows),
            "total_suspensions": sum(state["suspended"] for state in self.series),
            "rounds_executed": len(self.series),
            "makespan_s": self.now,
            "jobs": rows,
            "series": self.series,
        }

    def round(self):
        """Nodes, service, arrivals, admission, order, walk, its effects; waits are counted last."""
        while self.to_join and self.to_join[0].joins_at_s <= self.now:
            gpus = self.to_join.pop(0).gpus
            self.free |= set(range(len(self.node_of), len(self.node_of) + gpus))
            self.node_of += [len(self.case.cluster.nodes) - len(self.to_join)] * gpus
        if self.now:
            self.serve()
        self.admit()
        num_free, running = len(self.free), set(self.held)
        suspended, launched = self.walk()
        state = {"t_s": self.now, "total_jobs": len(self.live), "free_gpus": num_free}
        state["jobs_running"] = len(running - set(suspended))
        state["jobs_in_queue"] = len(self.live) - state["jobs_running"]
        state["gpu_demand"] = sum(job.gpus for job in self.live)
        state |= {"suspended": len(suspended), "launched": len(launched)}
        self.series.append(state)
        self.note(suspended, launched)
        for job in self.live:
            waits = job.id not in self.held and job.id not in suspended
            self.waits_s[job.id] = self.waits_s[job.id] + self.case.round_s if waits else 0
            if self.waits_s[job.id] >= STARVES_AFTER_S:
                self.promoted.add(job.id)

    def serve(self):
        """Running jobs are credited a round, and end when they have all their iterations."""
        round_s, rate = self.case.round_s, self.case.policy.service_rate_multiplier
        for job in list(self.live):
            if job.id not in self.held:
                continue
            self.got_s[job.id] += round_s
            self.credits[job.id] += round_s * rate / job.iteration_s
            if self.credits[job.id] >= job.duration_s / job.iteration_s:
                self.live.remove(job)
                self.free |= set(self.held.pop(job.id))
                row = self.rows[job.id]
                row |= {"finish_s": self.now, "jct_s": self.now - job.arrival_s}

    def admit(self):
        """Jobs arrive by number, and are admitted while the demand is at most the threshold."""
        come = [job for job in self.to_come if job.arrival_s <= self.now]
        self.to_come = [job for job in self.to_come if job.arrival_s > self.now]
        self.arrived += sorted(come, key=lambda job: job.id)
        threshold = self.case.policy.admission.threshold
        while self.arrived and (
            threshold is None or sum(job.gpus for job in self.live) <= threshold * len(self.node_of)
        ):
            job = self.arrived.pop(0)
            self.live.append(job)
            self.rows[job.id]["admitted_s"] = self.now

    def walk(self):
        """Launch in order, suspending from the end; stop at the first job that does not fit."""
        key = KEYS[self.case.policy.scheduler]
        order = sorted(
            self.live, key=lambda job: (job.id not in self.promoted, key(job, self.got_s[job.id]))
        )
        suspended, launched = [], []
        for place, job in enumerate(order):
            if job.id in self.held:
                continue
            gpus = self.place(job)
            for victim in reversed(order[place + 1 :]):
                if gpus:
                    break
                if victim.id in self.held:
                    self.free |= set(self.held.pop(victim.id))
                    suspended.append(victim.id)
                    gpus = self.place(job)
            if not gpus:
                break
            self.free -= set(gpus)
            self.held[job.id] = gpus
            launched.append(job.id)
        return suspended, launched

    def place(self, job):
        """GPUs of a job: of each node in turn at most its number; only if these are its number."""
        nodes = {}
        for gpu in sorted(self.free):
            nodes.setdefault(self.node_of[gpu], []).append(gpu)
        if job.placement_preference == "consolidated":
            return next((gpus for gpus in nodes.values() if len(gpus) == job.gpus), None)
        found = []
        for gpus in nodes.values():
            found += gpus[: job.gpus]
            if len(found) >= job.gpus:
                break
        return found if len(found) == job.gpus else None

    def note(self, suspended, launched):
        """Write down the walk's effects on jobs."""
        for number in suspended:
            self.rows[number]["suspensions"] += 1
        for job in self.live:
            if job.id not in launched:
                continue
            row = self.rows[job.id]
            row["launches"] += 1
            if row["launches"] == 1:
                row |= {"first_launch_s": self.now, "first_gpus": tuple(self.held[job.id])}
                row["responsiveness_s"] = self.now + self.case.round_s - job.arrival_s
