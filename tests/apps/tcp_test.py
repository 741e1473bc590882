"""--engine tcp: processes that connect by themselves, and `cohort launch` for them."""

import os
import pathlib
import signal
import subprocess
import time

import program
from program import ProgramTest, changed
from two_hosts import two_hosts

# 250 = 5 * 48 + 10: an uneven last batch.
PLAIN = ["--model", "mlp-100", "--data", "synthetic", "--synthetic-shape", "1x12x12",
         "--train-size", "250", "--test-size", "61", "--lr", "0.05", "--weight-decay", "0.001",
         "--iterations", "30", "--threads", "1", "--record-every", "10", "--method", "all-reduce"]
BATCH = 48
LONG = changed(PLAIN, iterations=100000, checkpoint_every=100000, eval_every=0, record_every=1,
               batch=8)
TORCH = "/usr/bin/python3"


class TcpTest(ProgramTest):
    def setUp(self):
        super().setUp()
        for name in list(self.environment):
            if name.startswith(("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_", "MASTER_")):
                del self.environment[name]
        self.meeting = self.folder / "meeting"
        self.meeting.mkdir(mode=0o700)
        self.environment["XDG_RUNTIME_DIR"] = str(self.meeting)

    def launch(self, processes, *arguments, status=0, **variables):
        """Runs `cohort launch --engine tcp` to its end."""
        own = self.environment
        self.environment = {**own, **variables}
        try:
            return self.cohort("launch", "--engine", "tcp", "-n", processes, "--", *arguments,
                               status=status)
        finally:
            self.environment = own

    def begin(self, rank, *arguments, size=2, port=29655, host="", **variables):
        """A process started by hand. `host`: which it is to count for."""
        variables = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": port, **({"COHORT_HOST": host} if host else {}), **variables}
        return self.start_with(variables, "train", "--engine", "tcp", *arguments)


class EqualToOne(TcpTest):
    def test_processes(self):
        one = self.train("one", *PLAIN, "--batch", BATCH, "--engine", "threads", "--workers", 1,
                         "--quiet")
        for processes in (1, 2, 3, 4):
            with self.subTest(processes=processes):
                self.launch(processes, "train", *PLAIN, "--batch", BATCH // processes, "--name",
                            f"t{processes}", "--quiet")
                self.assert_near(self.folder / f"runs/t{processes}", one)
        self.launch(3, "train", *PLAIN, "--batch", BATCH // 3, "--name", "again", "--quiet")
        self.assert_same_weights(self.folder / "runs/again", self.folder / "runs/t3")

    def test_hosts_and_threads(self):
        one = self.train("one", *PLAIN, "--batch", BATCH, "--engine", "threads", "--workers", 1,
                         "--quiet")
        for name in ("a", "b"):  # two workers on each of two hosts, connected by tcp
            self.finish([self.begin(rank, *PLAIN, "--batch", BATCH // 4, "--workers", 4, "--name",
                                    name, "--quiet", host=f"host{rank}") for rank in (1, 0)])
            self.assert_near(self.folder / f"runs/{name}", one)
        self.assert_same_weights(self.folder / "runs/a", self.folder / "runs/b")
        records = self.metrics(self.folder / "runs/a", "step")
        self.assertEqual({record["rank"] for record in records}, {0, 1, 2, 3})
        self.assertTrue(all(record["bytes_sent"] > 0 for record in records
                            if record["rank"] in (0, 2)))

    def test_as_torchrun_starts_it(self):
        probe = subprocess.run([TORCH, "-c", "import torch.distributed.run"], capture_output=True,
                               check=False) if os.path.exists(TORCH) else None
        if probe is None or probe.returncode != 0:
            self.skipTest("there is no torchrun")
        port = 29671  # torchrun's own store then listens there
        process = subprocess.Popen(
            [TORCH, "-m", "torch.distributed.run", "--no_python", "--nproc_per_node", "2",
             "--master_addr", "127.0.0.1", "--master_port", str(port), "--monitor_interval", "0.2",
             "-r", "1", "-t", "2", "--log_dir", str(self.folder / "logs"), program.COHORT, "train",
             "--engine", "tcp", *PLAIN, "--batch", str(BATCH // 2), "--name", "torchrun"],
            cwd=self.folder, env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.finish([process])
        self.assertTrue((self.folder / "runs/torchrun/summary.json").exists())


class Failing(TcpTest):
    def test_a_killed_process_is_named_by_the_other(self):
        for hosts in (("", ""), ("a", "b")):
            with self.subTest(hosts=hosts):
                name = f"killed{hosts[0]}"
                processes = [self.begin(rank, *LONG, "--name", name, host=hosts[rank])
                             for rank in (0, 1)]
                self.wait_for_step(processes[0], self.folder / "runs" / name, 5)
                time.sleep(0.5)  # what the other does is told four times a second
                killed_at = time.monotonic()
                processes[1].send_signal(signal.SIGKILL)
                _, err = processes[0].communicate(timeout=program.patiently(30))
                self.assertLess(time.monotonic() - killed_at, program.patiently(3))
                self.assertEqual(processes[0].returncode, 1, err)
                self.assertRegex(err, r"rank 1\b.*(was killed|is lost).*\bat step \d+, \w+")

    def test_ctrl_c_on_launch_saves_and_the_rest_is_exact(self):
        if "no failpoints" in self.cohort("train", "--failpoints", "x=crash", "--model", "none",
                                          status=2).stderr:
            self.skipTest("built without failpoints")
        train = changed(PLAIN, record_every=1, batch=24)
        whole = self.train("whole", *train, "--engine", "threads", "--workers", 2, "--quiet")
        run = self.folder / "runs/r"
        process = self.start("launch", "--engine", "tcp", "-n", 2, "--", "train", *train, "--name",
                             "r", "--failpoints", "training.compute.rank0=sleep:150")
        self.wait_for_step(process, run, 3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=program.patiently(60))
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("cohort train --resume", err)
        self.launch(2, "train", "--resume", run)
        self.assert_same_weights(run, whole)

    def test_launch_names_the_process_that_was_killed_and_leaves_none_behind(self):
        process = self.start("launch", "--engine", "tcp", "-n", 2, "--", "train", *LONG, "--name",
                             "r")
        self.wait_for_step(process, self.folder / "runs/r", 5)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        first, second = map(int, children.split())
        os.kill(second, signal.SIGKILL)
        _, err = process.communicate(timeout=program.patiently(30))
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("process 1 failed first: it was ended by signal 9 (Killed)", err)
        self.assertRegex(err, r"rank 1 \(process \d+\) was killed.*\bat step \d+, \w+")
        self.assertFalse(pathlib.Path(f"/proc/{first}").exists())

    def test_other_settings_are_named(self):
        processes = [self.begin(rank, *PLAIN, "--batch", 8, "--lr", f"0.{rank + 1}")
                     for rank in (0, 1)]
        errors = []
        for process in processes:
            _, err = process.communicate(timeout=program.patiently(60))
            self.assertIn(process.returncode, (1, 2), err)
            errors.append(err)
        self.assertIn("process 1 has other settings than process 0: --lr is 0.2 instead of 0.1",
                      "".join(errors))
        self.assertFalse((self.folder / "runs").exists())

    def test_launch_on_other_hosts_is_refused_with_the_commands(self):
        (self.folder / "hosts").write_text("a slots=1\n")
        for flags, said in ((["--engine", "tcp"], "RANK=0 WORLD_SIZE=2 MASTER_ADDR="),
                            (["--servers", "1"], "cohort serve-parameters --listen")):
            err = self.cohort("launch", *flags, "-n", 2, "--hosts", self.folder / "hosts", "--",
                              "train", status=2).stderr
            self.assertIn(said, err)
            self.assertIn("cohort token", err)

    def test_a_dry_run_prints_the_commands(self):
        lines = self.cohort("launch", "--engine", "tcp", "-n", 2, "--dry-run", "--", "train",
                            "--model", "lenet").stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn("RANK=1 WORLD_SIZE=2", lines[1])
        self.assertTrue(lines[1].endswith(f"{program.COHORT} train --model lenet --engine tcp"))
        lines = self.cohort("launch", "--servers", 1, "-n", 2, "--dry-run", "--", "train",
                            ).stdout.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertIn("serve-parameters --listen 127.0.0.1:", lines[0])
        self.assertRegex(lines[2], r"COHORT_RANK=1 COHORT_WORKERS=2 COHORT_SERVERS=127.0.0.1:\d+")


class TwoHostsTest(TcpTest):
    """Network namespaces: nothing but the wire between them."""

    def begin_on(self, hosts, number, *arguments, **variables):
        environment = {**self.environment, "RANK": str(number), "WORLD_SIZE": "2",
                       "MASTER_ADDR": hosts.addresses[0], "MASTER_PORT": "29700", **variables}
        process = subprocess.Popen(
            ["ip", "netns", "exec", hosts.names[number], "unshare", "--uts", "sh", "-c",
             'hostname "$0"; exec "$@"', hosts.names[number], program.COHORT, "train", "--engine",
             "tcp", *map(str, arguments)], cwd=self.folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_with_a_token_it_trains_and_without_it_is_refused(self):
        one = self.train("one", *PLAIN, "--batch", BATCH, "--engine", "threads", "--workers", 1,
                         "--quiet")
        with two_hosts(self.folder) as hosts:
            train = [*PLAIN, "--batch", BATCH // 2]
            for process in [self.begin_on(hosts, number, *train) for number in (0, 1)]:
                _, err = process.communicate(timeout=program.patiently(60))
                self.assertEqual(process.returncode, 2, err)
                for advice in ("cohort token", "--token-file", "--insecure"):
                    self.assertIn(advice, err)
            self.assertEqual([path.name for path in (self.folder / "runs").iterdir()], ["one"])
            self.finish([self.begin_on(hosts, number, *train, "--name", "two",
                                       COHORT_TOKEN="0123456789abcdef" * 4) for number in (1, 0)])
        self.assert_near(self.folder / "runs/two", one)

    def test_a_link_that_is_cut_is_noticed_at_both_ends(self):
        with two_hosts(self.folder) as hosts:
            processes = [self.begin_on(hosts, number, *LONG, "--name", "cut",
                                       COHORT_TOKEN="0123456789abcdef" * 4) for number in (0, 1)]
            self.wait_for_step(processes[0], self.folder / "runs/cut", 5)
            time.sleep(0.5)
            cut_at = time.monotonic()
            hosts.disconnect()
            for number, process in enumerate(processes):
                _, err = process.communicate(timeout=program.patiently(30))
                self.assertEqual(process.returncode, 1, err)
                self.assertRegex(err, rf"rank {1 - number} on {hosts.names[1 - number]} is lost: "
                                      r".*\bat step \d+, \w+")
            self.assertLess(time.monotonic() - cut_at, program.patiently(25))


if __name__ == "__main__":
    program.main()
