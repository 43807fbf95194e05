"""Simulated hosts: network namespaces on one bridge, with names, links and shared memory of their own. Needs root."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

AGENT = """#!/bin/bash
# Called as ssh is, with options, a host and a command.
while [ "${1#-}" != "$1" ]; do case $1 in -l|-p|-F|-o|-i) shift 2;; *) shift;; esac; done
host=$1; shift
exec ip netns exec $host unshare --uts --ipc --mount /bin/sh -c \\
    "hostname $host; mount -t tmpfs tmpfs /dev/shm; cd '$PWD'; $*"
"""


class Hosts:
    """Some hosts.

    Attributes:
        names: of the hosts.
        agent: a program to reach them by.
    """

    def __init__(self, count: int, folder: Path) -> None:
        mark = f"{os.getpid() % 0xFFFF:x}"
        self.names = [f"t{mark}h{i}" for i in range(count)]
        self.bridge = f"t{mark}br"
        self.agent = folder / "agent.sh"
        self.agent.write_text(AGENT, "utf-8")
        self.agent.chmod(self.agent.stat().st_mode | stat.S_IXUSR)
        self.net = f"10.{77 + os.getpid() % 100}.{os.getpid() // 100 % 250}"

    def up(self) -> None:
        """Make them."""
        known = "127.0.0.1 localhost\n" + "".join(f"{self.net}.{i + 1} {one}\n" for i, one in enumerate(self.names))
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "link", "set", self.bridge, "up")
        for i, one in enumerate(self.names):
            run("ip", "netns", "add", one)
            Path("/etc/netns", one).mkdir(parents=True, exist_ok=True)
            Path("/etc/netns", one, "hosts").write_text(known, "utf-8")
            run("ip", "link", "add", f"{one}v", "type", "veth", "peer", "name", "eth0", "netns", one)
            run("ip", "link", "set", f"{one}v", "master", self.bridge, "up")
            run("ip", "-n", one, "addr", "add", f"{self.net}.{i + 1}/24", "dev", "eth0")
            run("ip", "-n", one, "link", "set", "eth0", "up")
            run("ip", "-n", one, "link", "set", "lo", "up")

    def limit(self, rate: str) -> None:
        """Slow down what each host sends."""
        line = ["qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "256k", "latency", "200ms"]
        for one in self.names:
            try:
                run("tc", "-n", one, *line)
            except (OSError, subprocess.CalledProcessError) as error:
                pytest.skip(f"a rate limit needs the program tc and the kernel's token bucket: {error}")

    def cut(self, number: int) -> None:
        """Take one host off the net."""
        run("ip", "link", "set", f"{self.names[number]}v", "down")

    def down(self) -> None:
        """Take all of it away."""
        for one in self.names:
            pids = subprocess.run(["ip", "netns", "pids", one], capture_output=True, text=True, check=False).stdout
            for pid in pids.split():
                subprocess.run(["kill", "-9", pid], capture_output=True, check=False)
            subprocess.run(["ip", "link", "del", f"{one}v"], capture_output=True, check=False)
            subprocess.run(["ip", "netns", "del", one], capture_output=True, check=False)
            shutil.rmtree(f"/etc/netns/{one}", ignore_errors=True)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True, check=False)


def run(*line: str) -> None:
    subprocess.run(line, check=True, capture_output=True, text=True)


@contextmanager
def hosts(count: int, folder: Path) -> Iterator[Hosts]:
    """Hosts for one test; skips it, with the reason, where they cannot be made."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("simulated hosts need the programs ip and unshare")
    made = Hosts(count, folder)
    try:
        try:
            made.up()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"simulated hosts need the right to make network namespaces: {error.stderr.strip()}")
        yield made
    finally:
        made.down()
