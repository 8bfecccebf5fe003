"""Messages between scheduler, nodes, ranks and commands: JSON, checked on arrival."""

from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field

from des.base.names import require_name
from des.base.strict_forms import StrictForm, form_errors
from des.base.strict_json import parse_json

MOST_MESSAGE_BYTES = 4 * 2**20
"""Longest message to a scheduler. [bytes]"""


def _require_printable(name: str) -> str:
    """Refuse a name that cannot be shown."""
    require_name("message", "name", name)
    return name


def _without_nul(text: str) -> str:
    """Refuse a text that no process and no folder can be given."""
    if "\0" in text:
        raise ValueError("must be without NUL")
    return text


Name = Annotated[str, AfterValidator(_require_printable)]
Text = Annotated[str, Field(max_length=2000)]
Word = Annotated[str, Field(max_length=131_071), AfterValidator(_without_nul)]
"""Word of a command; Linux takes no longer one. The bound refuses lone surrogates as well."""
Whole = Annotated[int, Field(ge=-(10**15), le=10**15)]
"""Whole number that a float holds exactly, so that no later figure of it overflows."""
Level = Literal["", "node", "rack", "domain"]
Metrics = Annotated[dict[Name, Annotated[float, Field(allow_inf_nan=True)]], Field(max_length=32)]
"""A loss may be infinite or no number, which is worth knowing."""


class ClusterMessage(StrictForm):
    """A message; unknown keys and other types are refused, and longer texts than it may have."""

    model_config = ConfigDict(ser_json_inf_nan="constants")
    most_bytes: ClassVar[int] = MOST_MESSAGE_BYTES


class JobForm(ClusterMessage):
    """A job as its owner writes it.

    Attributes
    ----------
    launch_command, launch_params
        Words of the command of each rank: the first split as a shell does, the others as they are.
    folder
        Folder in which ranks run; none: that of the node.
    service_s
        Expected run time, for orderings that go by it. [s]
    iterations
        Iterations of the whole job, by which its progress is known; 0: not known.
    uses_lease
        Whether ranks ask for their lease (`scenarios.cluster.client`). Others get SIGTERM when
        they are to leave.
    """

    most_bytes: ClassVar[int] = 2**20

    launch_command: Annotated[Word, Field(min_length=1, max_length=10_000)]
    launch_params: list[Word | int | float] = Field(default_factory=list, max_length=1000)
    num_gpus: Annotated[int, Field(ge=1, le=100_000)] = 1
    name: Text = ""
    tenant: Text = ""
    folder: Annotated[Word, Field(max_length=2000)] = ""
    priority: Whole = 0
    service_s: Annotated[float, Field(gt=0, le=1e12)] = 86_400.0
    iterations: Annotated[Whole, Field(ge=0)] = 0
    level: Level = ""
    is_level_required: bool = False
    domain: Text = ""
    gpu_type: Text = ""
    uses_lease: bool = True


class LeaseQuestion(ClusterMessage):
    """The end of an iteration of a rank: the iteration that it wants to begin, and its figures."""

    iteration: Annotated[Whole, Field(ge=0)]
    metrics: Metrics = Field(default_factory=dict)


class RankReport(ClusterMessage):
    """A rank on its node.

    ``begun`` is the last iteration that it has begun; -1: none. A frozen rank begins no other until
    it is told when to leave. ``left`` is the reason for leaving: its lease, a signal, or the end of
    the node's own lease (``fence``).
    """

    job: Whole
    launch: Whole
    rank: Whole
    begun: Whole = -1
    is_frozen: bool = False
    has_ended: bool = False
    code: Whole = 0
    reason: Text = ""
    left: Literal["", "lease", "signal", "fence"] = ""
    metrics: Metrics = Field(default_factory=dict)


class NodeReport(ClusterMessage):
    """A node and all ranks that it has.

    ``incarnation`` is drawn when its process starts, ``number`` counts its reports; it is the first
    one until one was taken. ``free_ports`` are for launches whose rank 0 it gets.
    """

    node: Name
    incarnation: Name
    number: Whole
    is_first: bool = False
    num_gpus: Annotated[int, Field(ge=1, le=4096)]
    address: Name
    free_ports: list[Annotated[int, Field(ge=1, le=65535)]] = Field(max_length=64)
    gpu_type: Text = ""
    domain: Text = ""
    rack: Text = ""
    is_leaving: bool = False
    ranks: list[RankReport] = Field(default_factory=list)


class ReportReply(ClusterMessage):
    """Answer to a report: the lease of the node, and whether a leaving one may go."""

    lease_s: float
    may_go: bool


class FollowRequest(ClusterMessage):
    """A node asks for orders other than those that it has."""

    node: Name
    incarnation: Name
    digest: Annotated[str, Field(max_length=64)]


class RankOrder(ClusterMessage):
    """A rank that a node is to have, and how: running, held, leaving or killed."""

    job: int
    launch: int
    rank: int
    world_size: int
    gpu: int
    gpus: list[int]
    master_address: str
    master_port: int
    command: list[str]
    folder: str
    uses_lease: bool
    is_held: bool = False
    leaves_at: int | None = None
    is_killed: bool = False


class NodeOrders(ClusterMessage):
    """All ranks that a node is to have."""

    grace_s: float
    ranks: list[RankOrder]


class Submitted(ClusterMessage):
    """Answer to a job that is handed in."""

    job: int


class StatusRequest(ClusterMessage):
    """A request for the status, once it is another than that of ``version``, in time at most."""

    version: Annotated[str, Field(max_length=64)] = ""
    wait_s: Annotated[float, Field(ge=0, le=60)] = 0.0


class JobStatus(ClusterMessage):
    """A job for people.

    ``state`` is the phase of an earlier launch while its ranks have not left; ``gpus`` are those
    that it holds, by node.
    """

    job: int
    name: str
    state: str
    reason: str
    num_gpus: int
    gpus: dict[str, list[int]]
    launches: int
    suspensions: int
    failures: int
    iteration: int
    attained_s: float
    age_s: float
    metrics: Metrics


class NodeStatus(ClusterMessage):
    """A node for people."""

    node: str
    state: str
    address: str
    num_gpus: int
    num_free: int


class Status(ClusterMessage):
    """The cluster for people."""

    version: str
    policy: str
    now_s: float
    nodes: list[NodeStatus]
    jobs: list[JobStatus]


class DrainRequest(ClusterMessage):
    """A node that is to take no more jobs, or jobs again."""

    node: Name
    takes_jobs: bool


class CancelRequest(ClusterMessage):
    """A job that is to end."""

    job: Whole


class Ack(ClusterMessage):
    """Answer to a request that is granted."""


MessageT = TypeVar("MessageT", bound=ClusterMessage)


def read_message(form: type[MessageT], body: bytes | str, what: str) -> MessageT:
    """Read a message.

    Raises
    ------
    ValueError
        If it is not one of this form, naming the message, the field and what is allowed.
    """
    with form_errors(what):
        content = body.encode() if isinstance(body, str) else body
        if len(content) > form.most_bytes:
            raise ValueError(f"must be at most {form.most_bytes} bytes, got {len(content)}")
        return form.model_validate(parse_json(content.decode()))


def read_own(form: type[MessageT], text: bytes | str, what: str) -> MessageT:
    """Read what `message_text` wrote, of any size: a stored state, or orders of the scheduler.

    Raises
    ------
    ValueError
        If it is damaged, naming the field.
    """
    with form_errors(what):
        return form.model_validate_json(text)


def message_text(message: ClusterMessage) -> bytes:
    """Text of a message."""
    return message.model_dump_json().encode()
