"""Whole jobs of parameter servers that are interrupted or crash, and go on: to the right count."""

import json
import os
import pathlib
import re
import shutil
import signal
import time

import program
from job import alive
from program import changed, patiently
from servers_test import ServersTest, free_port
from workers_test import PLAIN

ITERATIONS = 260
SERVERS = 2
SETTINGS = [*changed(PLAIN, iterations=ITERATIONS, batch=16, train_size=400, eval_every=0,
                     checkpoint_every=40, record_every=1), "--method", "parameter-server"]
# Long enough to be hit in the middle.
SLOWLY = ["--failpoints", "training.compute.rank0=sleep:5;training.compute.rank1=sleep:5"]
MODES = ("sync", "async", "ssp")


def end_all(processes, number):
    for process in processes:
        process.send_signal(number)
    return processes


class RestartsTest(ServersTest):
    calm = None  # the weights of a synchronous run that nothing happened to

    def setUp(self):
        super().setUp()
        self.job_run = self.folder / "runs" / "job"

    def assert_whole(self, mode, counts, by_signal):
        """Every server has made every update, and synchronously to the same bits.

        A signal may find the workers of a synchronous job steps apart: the last rounds before the
        end are then of one gradient (docs/methods.md); on a busy machine more than one."""
        updates = ITERATIONS if mode == "sync" else 2 * ITERATIONS
        lacking = 2 * ITERATIONS - counts[0][1] if by_signal and mode == "sync" else 0
        self.assertIn(lacking, range(25), counts)
        self.assertEqual(counts, SERVERS * [(updates, 2 * ITERATIONS - lacking)])
        summary = json.loads((self.job_run / "summary.json").read_text())
        self.assertEqual((summary["reason"], summary["steps"]), ("finished", ITERATIONS))
        if mode != "sync" or lacking > 0:
            return
        weights = (self.latest(self.job_run) / "model.safetensors").read_bytes()
        if RestartsTest.calm is None:
            calm = self.train("calm", *SETTINGS, "--workers", 2, "--servers", SERVERS, "--quiet")
            RestartsTest.calm = (self.latest(calm) / "model.safetensors").read_bytes()
        self.assertEqual(weights, RestartsTest.calm)

    def for_each(self, scenario):
        for mode in MODES:
            for keeps in (True, False):
                with self.subTest(mode=mode, state_dir=keeps):
                    shutil.rmtree(self.folder / "runs", ignore_errors=True)
                    shutil.rmtree(self.folder / "state", ignore_errors=True)
                    scenario(mode, keeps)


class Launched(RestartsTest):
    def launch(self, keeps, *arguments):
        state = ["--state-dir", self.folder / "state"] if keeps else []
        return self.start("launch", "--servers", SERVERS, "-n", 2, *state, "--", "train", "--quiet",
                          *arguments)

    def check(self, end, by_signal=False):
        def scenario(mode, keeps):
            job = self.launch(keeps, *SETTINGS, *SLOWLY, "--server-mode", mode, "--name", "job")
            self.wait_for_step(job, self.job_run, 100)
            children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text()
            end(job, list(map(int, children.split())))
            job.communicate(timeout=patiently(20))
            deadline = time.monotonic() + patiently(20)
            while any(alive(int(each)) for each in children.split()):
                self.assertLess(time.monotonic(), deadline, "the job has not ended")
                time.sleep(0.02)
            again = self.launch(keeps, "--resume", self.job_run)
            out, err = again.communicate(timeout=patiently(60))
            self.assertEqual(again.returncode, 0, out + err)
            counts = re.findall(r"([\d,]+) updates from ([\d,]+) gradients", err)
            self.assert_whole(mode, [tuple(int(each.replace(",", "")) for each in pair)
                                     for pair in counts], by_signal)

        self.for_each(scenario)

    def test_the_launcher_is_killed(self):
        self.check(lambda job, children: job.kill())

    def test_everything_is_killed(self):
        def end(job, children):
            for process in (job.pid, *children):
                os.kill(process, signal.SIGKILL)

        self.check(end)

    def test_ctrl_c(self):
        self.check(lambda job, children: job.send_signal(signal.SIGINT), by_signal=True)

    def test_sigterm(self):
        self.check(lambda job, children: job.send_signal(signal.SIGTERM), by_signal=True)


class ByHand(RestartsTest):
    def serve_all(self, keeps, ports):
        return [self.serve(index, port, *(["--state-dir", self.folder / "state" / str(index)]
                                          if keeps else []))
                for index, port in enumerate(ports)]

    def workers(self, servers, *arguments):
        where = ",".join(server.address for server in servers)
        return [self.start("train", "--servers", where, "--workers", 2, "--rank", rank, "--quiet",
                           *arguments) for rank in (0, 1)]

    def check(self, end, by_signal=False):
        def scenario(mode, keeps):
            ports = [free_port() for _ in range(SERVERS)]
            servers = self.serve_all(keeps, ports)
            workers = self.workers(servers, *SETTINGS, *SLOWLY, "--server-mode", mode, "--name",
                                   "job")
            self.wait_for_step(workers[0], self.job_run, 100)
            ended = end(workers, servers)
            for process in ended:
                process.wait(patiently(20))
            if servers[0] in ended:
                servers = self.serve_all(keeps, ports)
            workers = self.workers(servers, "--method", "parameter-server", "--resume", self.job_run)
            self.finish(workers)
            summaries = [self.ended(server) for server in servers]
            self.assert_whole(mode, [(each["updates"], each["pushes"]) for each in summaries],
                              by_signal)

        self.for_each(scenario)

    def test_the_workers_are_killed(self):
        self.check(lambda workers, servers: end_all(workers, signal.SIGKILL))

    def test_everything_is_killed(self):
        self.check(lambda workers, servers: end_all(workers + servers, signal.SIGKILL))

    def test_ctrl_c(self):
        self.check(lambda workers, servers: end_all(workers + servers, signal.SIGINT),
                   by_signal=True)

    def test_sigterm_to_the_workers(self):
        self.check(lambda workers, servers: end_all(workers, signal.SIGTERM), by_signal=True)


if __name__ == "__main__":
    program.main()
