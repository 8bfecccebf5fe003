"""A folder of profiles and measured runs of a toy, and what is predicted from it."""

import csv

from scenarios.reproduce.sailor_cases import read_folder
from scenarios.reproduce.sailor_model import MODEL, predict_s

RUN = {
    "run_id": "toy/pp2_dp2",
    "usable": "1",
    "cluster": "toy cluster",
    "model": "toy",
    "schedule": "1F1B",
    "transformer_layers": "3",
    "pp": "2",
    "dp": "2",
    "tp": "2",
    "n_microbatches": "2",
    "measured_iter_s": "41.05",
    "measured_grad_reduce_s": "",
    "est_Good_s": "42.0",
    "est_Bad_s": "",
    "est_Good_mem_bytes": "1e9",
    "notes": "none, really",
}
FIRST_STAGE = {
    "run_id": "toy/pp2_dp2",
    "stage": "0",
    "gpu_type": "X",
    "replica_ids": "0;1",
    "first_layer": "0",
    "n_layers": "2",
    "fwd_s": "3",
    "bwd_s": "5",
    "update_s_per_layer_profile": "0.6",
    "param_bytes_per_gpu": "4e9",
    "send_act_bytes": "2e9",
    "p2p_c2": "0",
    "p2p_c1": "0",
    "p2p_c0": "2.5",
    "ar_c2": "0",
    "ar_c1": "0",
    "ar_c0": "0.5",
}
LAST_STAGE = FIRST_STAGE | {
    "stage": "1",
    "first_layer": "2",
    "n_layers": "3",
    "fwd_s": "4",
    "bwd_s": "7",
    "param_bytes_per_gpu": "3e9",
    "send_act_bytes": "0",
    "p2p_c2": "",
    "p2p_c1": "",
    "p2p_c0": "",
}
STAGES = [FIRST_STAGE, LAST_STAGE]
LAYERS = [
    {"model": "toy", "tp": "2", "layer": str(layer), "params_floats": floats}
    for layer, floats in enumerate(["5e8", "2.5e8", "2.5e8", "2.5e8", "5e8"])
]
LINK = {"src_gpu": "X", "dst_gpu": "X", "c2": "0", "c1": "0"}
LINKS = [
    LINK | {"gpus_per_side": "1", "c0": "1", "scope": "same zone"},
    LINK | {"gpus_per_side": "2", "c0": "2", "scope": "same zone"},
    LINK | {"gpus_per_side": "2", "c0": "9", "scope": "cross region"},
    LINK | {"gpus_per_side": "2", "c0": "4", "scope": "intra node"},
]
FILES = {
    "real_runs.csv": [RUN],
    "real_runs_stages.csv": STAGES,
    "layer_memory.csv": LAYERS,
    "network_profiles.csv": LINKS,
}


def write_folder(folder, files=FILES):
    for name, rows in files.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return folder


def predicted_s(folder, files=FILES, rules=MODEL):
    cases = read_folder(write_folder(folder, files))
    return predict_s(cases.runs[0], cases.network, rules)


def exact_blocking_s(forward_s, backward_s, down_s, up_s, num_microbatches):
    """Makespan of the runtime's own instructions: each send waits for its receive, each takes time.

    The program of a stage is that of DeepSpeed's TrainSchedule.
    """
    num_stages = len(forward_s)
    programs = [blocking_program(s, num_stages, num_microbatches) for s in range(num_stages)]
    done, free_s = [0] * num_stages, [0.0] * num_stages
    partners = {"send activation": 1, "receive activation": -1, "send gradient": -1}
    while any(done[s] < len(programs[s]) for s in range(num_stages)):
        before = list(done)
        for stage, program in enumerate(programs):
            if done[stage] == len(program):
                continue
            kind, microbatch = program[done[stage]]
            if kind in ("forward", "backward"):
                free_s[stage] += (forward_s if kind == "forward" else backward_s)[stage]
                done[stage] += 1
                continue
            other = stage + partners.get(kind, 1)
            what = kind.split()[1]
            wanted = ("receive " if kind.startswith("send") else "send ") + what
            place = done[other]
            if programs[other][place : place + 1] == [(wanted, microbatch)]:
                time_s = (down_s if what == "activation" else up_s)[min(stage, other)]
                free_s[stage] = free_s[other] = max(free_s[stage], free_s[other]) + time_s
                done[stage] += 1
                done[other] += 1
        assert done != before, "deadlock"
    return max(free_s)


def blocking_program(stage, num_stages, num_microbatches):
    """Instructions of one stage: even and odd steps alternate between forward and backward."""
    program, previous = [], -1
    for step in range(2 * (num_microbatches + num_stages - 1)):
        forward = step % 2 == stage % 2
        microbatch = (step - stage) // 2 if forward else (step + stage + 1) // 2 - num_stages
        valid, had = 0 <= microbatch < num_microbatches, 0 <= previous < num_microbatches
        if forward and stage > 0:
            program += [("send gradient", previous)] * had
            program += [("receive activation", microbatch)] * valid
        if not forward and stage < num_stages - 1:
            program += [("receive gradient", microbatch)] * valid
            program += [("send activation", previous)] * had
        program += [("forward" if forward else "backward", microbatch)] * valid
        previous = microbatch
    return program
