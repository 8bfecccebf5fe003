"""A cluster on paper for tests: nodes that obey orders, whose ranks go on when the test says so."""

from itertools import count

from agents.cluster.table import PolicySetting, policy_named
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.messages import JobForm, NodeReport, RankOrder, RankReport
from scenarios.cluster.node_reports import take_report
from scenarios.cluster.orders import node_orders

_NUMBERS = count()

Key = tuple[int, int, int]


def cluster_of(policy: str = "las", quantum_s: float = 1.0, **more) -> LiveCluster:
    """Cluster without nodes under a policy of the table, such as ``las`` or ``fifo+load_1.2``."""
    ordering, _, admission = policy.partition("+")
    setting = PolicySetting(quantum_s=quantum_s)
    chosen = policy_named(ordering, admission=admission or "accept_all", setting=setting)
    return LiveCluster(policy=chosen, lease_s=100.0, **more)


def form(num_gpus: int = 1, **more) -> JobForm:
    """Job of some GPUs."""
    return JobForm(launch_command="train", num_gpus=num_gpus, **more)


class ScriptedNode:
    """A node: its ranks begin an iteration when told, and leave when their lease says so."""

    def __init__(self, cluster: LiveCluster, name: str, num_gpus: int) -> None:
        self.cluster, self.name, self.num_gpus = cluster, name, num_gpus
        self.is_leaving = False
        self.left_at: dict[Key, int] = {}
        self.restart()

    def restart(self) -> None:
        """Begin again in a new process, without ranks."""
        self.incarnation, self.is_first = f"process-{next(_NUMBERS)}", True
        self.orders: dict[Key, RankOrder] = {}
        self.ranks: dict[Key, RankReport] = {}

    def message(self) -> NodeReport:
        """Report as it is now."""
        return NodeReport(
            node=self.name,
            incarnation=self.incarnation,
            number=next(_NUMBERS),
            is_first=self.is_first,
            num_gpus=self.num_gpus,
            address="127.0.0.1",
            free_ports=[4000, 4001],
            is_leaving=self.is_leaving,
            ranks=list(self.ranks.values()),
        )

    def report(self, now_s: float) -> bool:
        """Report, and let launches start."""
        may_go = take_report(self.cluster, self.message(), now_s)
        self.is_first = False
        self.cluster.start_ready(now_s)
        return may_go

    def obey(self) -> None:
        """Take the orders of now; a process that the scheduler does not know yet has none."""
        if self.cluster.nodes[self.name].incarnation != self.incarnation:
            return
        orders = node_orders(self.cluster, self.name).ranks
        self.orders = {(order.job, order.launch, order.rank): order for order in orders}
        self.ranks = {key: rank for key, rank in self.ranks.items() if key in self.orders}
        for key, order in self.orders.items():
            rank = self.ranks.setdefault(
                key, RankReport(job=order.job, launch=order.launch, rank=order.rank)
            )
            rank.is_frozen = rank.is_frozen or order.is_held
            if order.is_killed:
                rank.has_ended = True

    def begin(self, key: Key, iteration: int) -> bool:
        """Let a rank ask for an iteration; whether it began it."""
        rank, order = self.ranks[key], self.orders[key]
        if rank.has_ended or (rank.is_frozen and order.leaves_at is None):
            return False
        if order.leaves_at is not None and iteration >= order.leaves_at:
            rank.left, rank.has_ended = "lease", True
            self.left_at[key] = iteration
            return False
        rank.begun = max(rank.begun, iteration)
        return True

    def exit(self, key: Key, code: int = 0) -> None:
        """Let a rank end by itself."""
        self.ranks[key].has_ended, self.ranks[key].code = True, code


def settle(cluster: LiveCluster, nodes: list[ScriptedNode], now_s: float) -> None:
    """Let all nodes report and obey until nothing changes."""
    before = None
    while before != (now := [node_orders(cluster, node.name) for node in nodes]):
        before = now
        for node in nodes:
            node.obey()
            node.report(now_s)
