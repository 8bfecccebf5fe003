"""The local agent: how the GPUs of one domain share the layers that are placed there."""

from agents.local.case import LocalCase, TrainingJob
from agents.local.decide import LocalAgent, LocalDecision, SharedSetting
from agents.local.gpus import LINK_CLASSES, GpuTopology, LinkClass
from agents.local.options import LocalOption, Options, options_of
from agents.local.policy import LocalArchitecture, LocalPolicy, load_policy, save_policy
from agents.local.rules import largest_tensor, largest_tensor_bound, least_estimate
from agents.local.servers import SERVERS, draw_server, renumbered, server
from agents.local.shipped import shipped_local
from agents.local.times import LocalPlan, exhaustive, seconds_per_sequence
from agents.local.together import (
    agree,
    bound_topology,
    cases_of,
    settle,
    with_local,
    workload_of,
)
from agents.local.training import LocalTrainer, LocalTraining

__all__ = [
    "LINK_CLASSES",
    "SERVERS",
    "GpuTopology",
    "LinkClass",
    "LocalAgent",
    "LocalArchitecture",
    "LocalCase",
    "LocalDecision",
    "LocalOption",
    "LocalPlan",
    "LocalPolicy",
    "LocalTrainer",
    "LocalTraining",
    "Options",
    "SharedSetting",
    "TrainingJob",
    "agree",
    "bound_topology",
    "cases_of",
    "draw_server",
    "exhaustive",
    "largest_tensor",
    "largest_tensor_bound",
    "least_estimate",
    "load_policy",
    "options_of",
    "renumbered",
    "save_policy",
    "seconds_per_sequence",
    "server",
    "settle",
    "shipped_local",
    "with_local",
    "workload_of",
]
