"""Hosts of a launch: files of both forms, placeholders, and one clear error for each mistake."""

import re

import pytest
from bound_cases import bound_plan, site, sites
from launch_cases import bound_of
from plan_files import bound_case

from scenarios.iteration.launch_folder import read_hosts
from scenarios.launch.hosts import hosts_of_sites
from scenarios.launch.launch_files import launch_files

PLAIN = "# of the plan\nA a0 8\nA a1\nB b0.example.org 8\nB b1\nB spare\nC c0\n"
YAML = "A: [a0, a1]\nB: {hosts: [b0.example.org, b1, spare], gpus: 8}\n"


def names_of(tmp_path, text, name="hosts.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return [own.names for own in hosts_of_sites(bound_case(), path).values()]


@pytest.mark.parametrize(("name", "text"), [("hosts.txt", PLAIN), ("hosts.yaml", YAML)])
def test_each_site_gets_its_first_hosts(name, text, tmp_path):
    """Two stages of a server each are in A and in B."""
    assert names_of(tmp_path, text, name) == [("a0", "a1"), ("b0.example.org", "b1")]


def test_without_a_file_hosts_are_named_after_their_sites():
    hosts = read_hosts(launch_files(bound_case()).files["hosts.txt"])

    assert [host.name for host in hosts] == ["A-0", "A-1", "B-0", "B-1"]
    assert [(host.rank, host.num_gpus, host.site) for host in hosts] == [
        (0, 8, "A"),
        (1, 8, "A"),
        (2, 8, "B"),
        (3, 8, "B"),
    ]


def test_a_host_of_a_part_works_with_its_first_gpus_only():
    """Three stages of four GPUs are on a server and a half."""
    bound = bound_of(bound_plan("0*18,1*14", "4x1x3"))
    hosts = read_hosts(launch_files(bound).files["hosts.txt"])

    assert [(host.name, host.num_gpus) for host in hosts] == [
        ("A-0", 8),
        ("A-1", 4),
        ("B-0", 8),
        ("B-1", 4),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("h", "A a0\nB b0\nB b1\n", "A must have at least 2 hosts, .* of the plan; got 1"),
        ("h", "A a0\nA a1\n", "B must have at least 2 hosts, for the servers of the plan; got 0"),
        ("h", "A a0\nA a0\nB b0\nB b1\n", "each host must be given once, got a0 twice"),
        ("h", "A a0\nA a1\nB a1\nB b1\n", "each host must be given once, got a1 twice"),
        ("h", "A big host one\n", "line 1: must be a site, a host .* got 'A big host one'"),
        ("h", "A a0\nD d0\n", "sites must be some of A, B, C; got 'D'"),
        ("h", "A a0 8\nA a1 4\n", "line 2: hosts of A must have equally many GPUs, got 4 and 8"),
        ("h", "A a0 4\nA a1\n", "hosts of A must have the 8 GPUs of its servers; got 4"),
        ("h", "A a0\nA -a1\nB b0\nB b1\n", "must be of letters, digits, .* got '-a1'"),
        ("h.yaml", "A: ['a 0', a1]\nB: [b0, b1]\n", "must be of letters, .* got 'a 0'"),
        ("h.yaml", "A: a0\n", "A must be a list of hosts, or have hosts, .* got 'a0'"),
        ("h.yaml", "A: {hosts: [a0], gpus: 0}\n", "A must be a list of hosts, .* a count"),
        ("h.yaml", "[a0]\n", "must be a mapping of sites to hosts"),
    ],
)
def test_a_file_of_hosts_that_cannot_be_is_refused(name, text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        names_of(tmp_path, text, name)


def test_a_site_that_no_host_can_be_named_after_needs_a_file():
    bound = bound_of(bound_plan(), sites(site("New York"), site("B"), site("C")))
    with pytest.raises(ValueError, match=r"got 'New York-0', for want of --hosts"):
        hosts_of_sites(bound, None)


def test_gpus_of_servers_that_are_not_known_are_those_of_the_file(tmp_path):
    bound = bound_of(bound_plan(), sites(site("A", 16, None), site("B"), site("C")))
    path = tmp_path / "hosts"
    path.write_text("".join(f"A a{number} 4\n" for number in range(4)) + "B b0\nB b1\n", "utf-8")

    assert hosts_of_sites(bound, path)[0].names == ("a0", "a1", "a2", "a3")
    assert hosts_of_sites(bound, None)[0].names == ("A-0", "A-1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 a 8 A\n", "line 0 must be its number, a host, its GPUs and its site; got '1 a 8 A'"),
        ("0 a 0 A\n", "got '0 a 0 A'"),
        ("0 a 8\n", "got '0 a 8'"),
        ("0 a 8 A\n1 a 8 A\n", "each host must be given once, got a twice"),
    ],
)
def test_hosts_of_a_launch_that_are_not_in_order_are_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_hosts(text)
