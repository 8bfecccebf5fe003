"""Readers of traces, each on a small file of our own, and the report of rows left out."""

import json

import pytest

from scenarios.job_queue.traces.forms import FORMS, read_job_trace

GPU = {"ip": "m1", "gpus": ["gpu0", "gpu1"]}


def attempt(start, end, servers=1):
    return {"start_time": start, "end_time": end, "detail": [GPU] * servers}


def philly_job(name, submitted, attempts, status="Pass"):
    return {
        "status": status,
        "vc": "vc1",
        "jobid": name,
        "user": "u1",
        "submitted_time": submitted,
        "attempts": attempts,
    }


PHILLY = [
    philly_job(
        "two",
        "2017-10-01 00:10:00",
        [
            attempt("2017-10-01 00:20:00", "2017-10-01 00:30:00", 2),
            attempt("2017-10-01 01:00:00", "2017-10-01 01:05:00", 2),
        ],
    ),
    philly_job("one", "2017-10-01 00:00:00", [attempt("2017-10-01 00:00:00", "None")]),
    philly_job("none", "2017-10-01 00:00:00", []),
    philly_job(
        "bad",
        "2017-10-01 00:20:00",
        [attempt("2017-10-01 00:20:00", "2017-10-01 00:21:00")],
        "Killed",
    ),
]
TABLES = {
    "helios": (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "7,u,v,8,1,1,COMPLETED,2020-04-01 00:01:00,2020-04-01 00:01:10,2020-04-01 00:02:10,60,10\n"
        "8,u,v,0,1,1,COMPLETED,2020-04-01 00:01:00,,,60,10\n"
        "9,u,v,1,1,1,FAILED,2020-04-01 00:00:00,,,30,10\n",
        [("9", 0, 1, 30), ("7", 60, 8, 60)],
        {"no GPUs": 1},
    ),
    "acme": (
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration\n"
        "1,u,1,16,1,Pretrain,COMPLETED,2023-03-01 08:00:00+08:00,2023-03-01 08:10:00+08:00,"
        "2023-03-01 08:20:00+08:00,1200\n"
        "2,u,1,1,1,Eval,FAILED,2023-03-01 00:05:00+00:00,,2023-03-01 00:20:00+00:00,9\n",
        [("1", 0, 16, 600)],
        {"no duration": 1},
    ),
    "alibaba_2023": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time\n"
        "p0,1,1,1,500,,LS,Succeeded,100,160,110\np1,1,1,4,1000,A|B,BE,Failed,90,190,\n",
        [("p1", 0, 4, 100), ("p0", 10, 1, 50)],
        {},
    ),
    "alibaba_spot": (
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
        "job_type\nj0,o1,A100,1,4,2,5,100,HP\nj1,o2,A100,1,0.5,1,6,0,Spot\n",
        [("j0", 0, 8, 100)],
        {"duration of 0": 1},
    ),
    "tiresias": (
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
        "1,2,50,10,vgg,300,1\n2,1,-1,10,vgg,300,1\n",
        [("1", 0, 2, 300)],
        {"negative time of submission": 1},
    ),
    "blox": (
        "0,res18,10,500,1\n1,lstm,4,60,2\n",
        [("1", 0, 2, 60), ("0", 6, 1, 500)],
        {},
    ),
}


def rows(trace):
    """Name, arrival, GPUs and service of the jobs."""
    return [(job.name, job.arrival_s, job.num_gpus, job.service_s) for job in trace.jobs]


@pytest.mark.parametrize("form", sorted(TABLES))
def test_a_table_is_known_by_its_columns_and_read(form, tmp_path):
    text, expected, dropped = TABLES[form]
    path = tmp_path / "trace.csv"
    path.write_text(text, "utf-8")
    trace = read_job_trace(path, "auto")

    assert trace.form == form
    assert rows(trace) == expected
    assert trace.dropped == dropped
    assert [job.job_id for job in trace.jobs] == list(range(len(expected)))


def test_a_log_of_philly_sums_attempts(tmp_path):
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps(PHILLY), "utf-8")
    trace = read_job_trace(path, "auto")

    assert rows(trace) == [("two", 0, 4, 900), ("bad", 600, 2, 60)]
    assert trace.dropped == {"no duration": 1, "no number of GPUs": 1}
    assert [job.tenant for job in trace.jobs] == ["vc1", "vc1"]
    assert read_job_trace(path, "philly", keeps_failed=False).dropped["failed or killed"] == 1
    assert "left out, no duration: 1" in trace.report


def test_percents_of_alibaba_2020_are_parts_of_a_gpu(tmp_path):
    (tmp_path / "job_table.csv").write_text(
        "a,i,u,Terminated,100,400\nb,i,u,Failed,50,60\nc,i,u,Terminated,70,\n", "utf-8"
    )
    (tmp_path / "task_table.csv").write_text(
        "a,worker,4,Terminated,150,400,100,1,50,V100\na,ps,1,Terminated,140,400,100,1,,\n"
        "b,worker,1,Failed,50,60,100,1,100,T4\nc,worker,1,Failed,70,,1,1,100,T4\n",
        "utf-8",
    )
    trace = read_job_trace(tmp_path, "auto")

    assert rows(trace) == [("b", 0, 1, 10), ("a", 50, 2, 260)]
    assert trace.dropped == {"no duration": 1}


def test_workers_of_lingjun_add_up_and_run_from_their_start(tmp_path):
    """Job b ran before it was submitted, c never ran, d has no workers, e was stopped."""
    head = "id,job_name,model,status,priority,gmt_job_submitted,gmt_job_running,"
    (tmp_path / "job.csv").write_text(
        f"{head}gmt_job_finished,gmt_job_stopped\n"
        "1,a,GPT,Succeeded,1,2023/7/15 02:00,2023/7/15 02:05,2023/7/15 03:05,\n"
        "2,b,,Succeeded,2,2023/7/15 02:10,2023/7/15 01:00,2023/7/15 02:20,\n"
        "3,c,,Failed,1,2023/7/15 02:11,,2023/7/15 02:12,\n"
        "4,d,,Succeeded,1,2023/7/15 02:12,2023/7/15 02:13,2023/7/15 02:14,\n"
        "5,e,,Stopped,1,2023/7/15 02:13,2023/7/15 02:14,,2023/7/15 02:16\n",
        "utf-8",
    )
    two = '"{""cpu"": ""8"", ""nvidia.com/gpu"": ""8"", ""koordinator.sh/rdma"": ""100""}"'
    lines = [f"{number},{job},{two}" for number, job in enumerate("aabce")]
    (tmp_path / "worker.csv").write_text("id,job_name,RES\n" + "\n".join(lines) + "\n", "utf-8")
    trace = read_job_trace(tmp_path, "auto")

    assert rows(trace) == [("a", 0, 16, 3600), ("b", 600, 8, 600), ("e", 780, 8, 120)]
    assert trace.dropped == {"no duration": 1, "no number of GPUs": 1}
    assert [job.model for job in trace.jobs] == ["GPT", "", ""]
    kept = read_job_trace(tmp_path, "lingjun", keeps_failed=False)
    assert [job.name for job in kept.jobs] == ["a", "b"]

    (tmp_path / "worker.csv").write_text("id,job_name,RES\n1,a,[]\n", "utf-8")
    with pytest.raises(ValueError, match=r"worker\.csv: RES must hold JSON objects"):
        read_job_trace(tmp_path, "lingjun")


def test_steps_of_gavel_take_the_time_of_their_throughput(tmp_path):
    path = tmp_path / "trace.tsv"
    cells = ["res (batch size 16)", "cmd", "dir", "--n", "1", "1000", "2", "1.0", "-1", "5.5"]
    unknown = ["other", *cells[1:]]
    path.write_text("\t".join(cells) + "\n" + "\t".join(unknown) + "\n", "utf-8")
    speeds = {"v100": {"res (batch size 16)": {"2": 4.0}}}
    (tmp_path / "throughputs.json").write_text(json.dumps(speeds), "utf-8")
    trace = read_job_trace(path, "auto")

    assert rows(trace) == [("0", 0, 2, 250)]
    assert trace.dropped == {"no duration": 1}
    assert trace.notes == ("durations are steps over the throughput on v100",)


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("a,b\n1,2\n", "auto", "must be a trace of one of the forms philly.*nearest is"),
        (TABLES["helios"][0], "acme", "of the form acme.*the nearest form is helios"),
        (TABLES["helios"][0], "heliox", "unknown form of trace 'heliox'; did you mean 'helios'"),
        (TABLES["helios"][0] + "1,2\n", "helios", "line 5: must have 12 cells, got 2"),
        (TABLES["helios"][0].splitlines()[0] + "\n", "helios", "got none .no rows"),
    ],
)
def test_another_form_is_refused_and_the_nearest_named(text, form, message, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        read_job_trace(path, form)


def test_every_form_has_a_test():
    assert set(FORMS) == {*TABLES, "philly", "alibaba_2020", "lingjun", "gavel"}
