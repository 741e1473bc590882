"""Two network namespaces that look like two hosts to Open MPI.

Each has its own interfaces, joined by a pair of virtual ones, and its own host name, so that
nothing but TCP connects them: no shared memory is offered between processes whose hosts' names
differ. mpirun runs in the first and reaches the second through a small script in the place of ssh.

    with two_hosts(folder) as hosts:
        hosts.run(["mpirun", *hosts.mpirun_flags(), "-n", "2", "hostname"])

Raises unittest.SkipTest with the reason where that is not possible: it needs root, ip (iproute2),
unshare and mpirun. The namespaces are taken down however the block ends.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import unittest

AGENT = """#!/bin/sh
# agent HOST COMMAND...: as ssh, runs the command's words in a shell on that host.
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
"""


class TwoHosts:
    def __init__(self, folder, names, addresses, subnet):
        self.names = names          # of the hosts and of their namespaces
        self.addresses = addresses
        self.subnet = subnet
        self.agent = pathlib.Path(folder) / "agent"
        self.hosts_file = pathlib.Path(folder) / "hosts"

    def settings(self):
        """What Open MPI must be told, as variables of the environment: use only the pair."""
        return {"OMPI_MCA_plm_rsh_agent": str(self.agent),
                "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
                "OMPI_MCA_oob_tcp_if_include": self.subnet,
                "OMPI_MCA_btl_tcp_if_include": self.subnet,
                "OMPI_MCA_btl": "tcp,self",
                "OMPI_MCA_pml": "ob1",
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def mpirun_flags(self):
        return ["--hostfile", str(self.hosts_file), "--bind-to", "none"]

    def command(self, arguments):
        """The command that runs `arguments` on the first host."""
        return ["ip", "netns", "exec", self.names[0], "unshare", "--uts", "sh", "-c",
                'hostname "$0"; exec "$@"', self.names[0], *map(str, arguments)]

    def start(self, arguments, environment=None, **options):
        environment = {**(os.environ if environment is None else environment), **self.settings()}
        return subprocess.Popen(self.command(arguments), env=environment, **options)

    def run(self, arguments, environment=None, timeout=60):
        process = self.start(arguments, environment, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"{arguments} took longer than {timeout} s\n{out}\n{err}")
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def slow_down(self, rate):
        """So much each way, such as "1gbit"; skips the test where the system cannot."""
        for name in self.names:
            done = subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "pair", "root", "tbf",
                                   "rate", rate, "burst", "256kb", "latency", "100ms"],
                                  timeout=20, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            if done.returncode != 0:
                raise unittest.SkipTest(f"two hosts: no slow link here: {done.stderr}".strip())

    @contextlib.contextmanager
    def deaf(self, port):
        """What comes to this port of the first host vanishes meanwhile; what it sends arrives."""
        def nft(text):
            subprocess.run(["ip", "netns", "exec", self.names[0], "nft", "-f", "-"], input=text,
                           check=True, timeout=20, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
        if shutil.which("nft") is None:
            raise unittest.SkipTest("two hosts: there is no nft")
        try:
            nft("table inet deaf { chain input { type filter hook input priority 0; "
                f"ip saddr {self.addresses[1]} tcp dport {port} drop; }}; }}")
        except subprocess.CalledProcessError as error:
            raise unittest.SkipTest(f"two hosts: no filters here: {error.stderr}".strip())
        yield
        nft("delete table inet deaf")

    def disconnect(self):
        """Pulls the cable."""
        ip("-n", self.names[1], "link", "set", "pair", "down")


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, timeout=20, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE, text=True)


def take_down(names):
    for name in names:
        listed = subprocess.run(["ip", "netns", "pids", name], timeout=20, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for process in listed.stdout.split():  # only what was started in there
            with contextlib.suppress(OSError):
                os.kill(int(process), 9)
        subprocess.run(["ip", "netns", "delete", name], timeout=20, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)


def set_up(names, addresses):
    for name in names:
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
    ip("-n", names[0], "link", "add", "pair", "type", "veth", "peer", "name", "pair",
       "netns", names[1])
    for name, address in zip(names, addresses):
        ip("-n", name, "address", "add", address + "/24", "dev", "pair")
        ip("-n", name, "link", "set", "pair", "up")


@contextlib.contextmanager
def two_hosts(folder, slots=1):
    if os.geteuid() != 0:
        raise unittest.SkipTest("two hosts: only root may make network namespaces")
    for program in ("ip", "unshare", "hostname", "mpirun"):
        if shutil.which(program) is None:
            raise unittest.SkipTest(f"two hosts: there is no {program}")
    third = os.getpid() % 250 + 1
    names = [f"cohort{os.getpid()}{letter}" for letter in "ab"]
    addresses = [f"10.213.{third}.{number}" for number in (1, 2)]
    hosts = TwoHosts(folder, names, addresses, f"10.213.{third}.0/24")
    hosts.agent.write_text(AGENT)
    hosts.agent.chmod(0o755)
    hosts.hosts_file.write_text("".join(f"{name} slots={slots}\n" for name in names))
    try:
        try:
            set_up(names, addresses)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            said = getattr(error, "stderr", "") or error
            raise unittest.SkipTest(f"two hosts: no namespaces here: {said}".strip())
        yield hosts
    finally:
        take_down(names)
