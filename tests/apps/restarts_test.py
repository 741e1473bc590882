"""Whole jobs of parameter servers that are interrupted or crash, and go on: to the right count."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import threading
import time

import program
from job import alive
from ports import free_port
from program import changed, patiently
from servers_test import ServersTest
from workers_test import PLAIN

ITERATIONS = 200
SERVERS = 2
# Without --quiet: what the job says when it is interrupted is looked at.
SETTINGS = [*changed(PLAIN, iterations=ITERATIONS, batch=16, train_size=400, eval_every=0,
                     checkpoint_every=40, record_every=1), "--method", "parameter-server"]
# A launcher passes a signal on 2 s after it has started its processes, at the earliest: the steps
# of the first sitting take longer than that.
SLOWLY = ["--failpoints", "training.compute.rank0=sleep:15;training.compute.rank1=sleep:15"]
HIT_AT = 60
MODES = ("sync", "async", "ssp")


def end_all(processes, number):
    for process in processes:
        process.send_signal(number)
    return processes


class RestartsTest(ServersTest):
    calm = None  # the weights of a synchronous run that nothing happened to
    lock = threading.Lock()

    def assert_saved(self, run, said, reached):
        """The job was interrupted, and saved where it stood: not where it had saved before."""
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual(summary["reason"], "interrupted")
        self.assertLess(summary["steps"], ITERATIONS)
        self.assertGreaterEqual(summary["steps"], reached)
        self.assertEqual(self.latest(run).name, f"step-{summary['steps']:09}")
        if said is not None:
            self.assertIn(f"interrupted after step {summary['steps']}; everything is saved", said)

    def reached(self, run):
        """The last step that is recorded, and so in the model."""
        return self.metrics(run, "step", torn=True)[-1]["step"]

    def assert_whole(self, run, mode, counts):
        """Every server has made every update, and synchronously to the same bits."""
        updates = ITERATIONS if mode == "sync" else 2 * ITERATIONS
        self.assertEqual(counts, SERVERS * [(updates, 2 * ITERATIONS)])
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual((summary["reason"], summary["steps"]), ("finished", ITERATIONS))
        if mode != "sync":
            return
        weights = (self.latest(run) / "model.safetensors").read_bytes()
        with RestartsTest.lock:
            self.assertEqual(weights, self.calm_weights())

    def calm_weights(self):
        if RestartsTest.calm is None:
            calm = self.train("calm", *SETTINGS, "--workers", 2, "--servers", SERVERS, "--quiet")
            RestartsTest.calm = (self.latest(calm) / "model.safetensors").read_bytes()
        return RestartsTest.calm

    def for_each(self, scenario):
        """In all modes at once: they wait most of the time."""
        cells = [(mode, keeps) for keeps in (True, False) for mode in MODES]

        def one(cell):
            name = cell[0] + ("-kept" if cell[1] else "")
            scenario(cell[0], self.folder / "runs" / name,
                     self.folder / f"state-{name}" if cell[1] else None)

        with concurrent.futures.ThreadPoolExecutor(len(MODES)) as pool:
            results = [pool.submit(one, cell) for cell in cells]
        for cell, result in zip(cells, results):
            with self.subTest(mode=cell[0], state_dir=cell[1]):
                result.result()


class Launched(RestartsTest):
    def launch(self, state, *arguments):
        state = ["--state-dir", state] if state else []
        return self.start("launch", "--servers", SERVERS, "-n", 2, *state, "--", "train",
                          *arguments)

    def check(self, end, saves=True, status=None):
        """`end` returns whether the launcher is there to pass on what its processes say."""
        def scenario(mode, run, state):
            job = self.launch(state, *SETTINGS, *SLOWLY, "--server-mode", mode, "--name", run.name)
            self.wait_for_step(job, run, HIT_AT)
            children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text()
            reached = self.reached(run)
            end(job, list(map(int, children.split())))
            _, said = job.communicate(timeout=patiently(20))
            deadline = time.monotonic() + patiently(20)
            while any(alive(int(each)) for each in children.split()):
                self.assertLess(time.monotonic(), deadline, "the job has not ended")
                time.sleep(0.02)
            self.assertEqual(job.returncode, status, said)
            if saves:
                self.assert_saved(run, said if status == 130 else None, reached)
            again = self.launch(state, "--resume", run)
            out, err = again.communicate(timeout=patiently(60))
            self.assertEqual(again.returncode, 0, out + err)
            counts = re.findall(r"([\d,]+) updates from ([\d,]+) gradients", err)
            self.assert_whole(run, mode, [tuple(int(each.replace(",", "")) for each in pair)
                                          for pair in counts])

        self.for_each(scenario)

    def test_the_launcher_is_killed(self):
        self.check(lambda job, children: job.kill(), status=-signal.SIGKILL)

    def test_everything_is_killed(self):
        def end(job, children):
            for process in (job.pid, *children):
                os.kill(process, signal.SIGKILL)

        self.check(end, saves=False, status=-signal.SIGKILL)

    def test_ctrl_c(self):
        self.check(lambda job, children: job.send_signal(signal.SIGINT), status=130)

    def test_sigterm(self):
        self.check(lambda job, children: job.send_signal(signal.SIGTERM), status=130)


class ByHand(RestartsTest):
    def serve_all(self, state, ports):
        return [self.serve(index, port, *(["--state-dir", state / str(index)] if state else []))
                for index, port in enumerate(ports)]

    def workers(self, servers, *arguments):
        where = ",".join(server.address for server in servers)
        return [self.start("train", "--servers", where, "--workers", 2, "--rank", rank, *arguments)
                for rank in (0, 1)]

    def check(self, end, signalled=False):
        def scenario(mode, run, state):
            ports = [free_port() for _ in range(SERVERS)]
            servers = self.serve_all(state, ports)
            workers = self.workers(servers, *SETTINGS, *SLOWLY, "--server-mode", mode, "--name",
                                   run.name)
            self.wait_for_step(workers[0], run, HIT_AT)
            reached = self.reached(run)
            ended = end(workers, servers)
            said = [process.communicate(timeout=patiently(20))[1] for process in workers]
            for process in ended:
                process.wait(patiently(20))
                self.assertEqual(process.returncode, 130 if signalled else -signal.SIGKILL)
            if signalled:
                self.assert_saved(run, said[0], reached)
            if servers[0] in ended:
                servers = self.serve_all(state, ports)
            workers = self.workers(servers, "--quiet", "--method", "parameter-server", "--resume",
                                   run)
            self.finish(workers)
            summaries = [self.ended(server) for server in servers]
            self.assert_whole(run, mode, [(each["updates"], each["pushes"]) for each in summaries])

        self.for_each(scenario)

    def test_the_workers_are_killed(self):
        """Nobody starts all of them here: this is what stands for the launcher that is killed."""
        self.check(lambda workers, servers: end_all(workers, signal.SIGKILL))

    def test_everything_is_killed(self):
        self.check(lambda workers, servers: end_all(workers + servers, signal.SIGKILL))

    def test_ctrl_c(self):
        self.check(lambda workers, servers: end_all(workers + servers, signal.SIGINT),
                   signalled=True)

    def test_sigterm(self):
        self.check(lambda workers, servers: end_all(workers + servers, signal.SIGTERM),
                   signalled=True)

    def test_sigterm_to_the_workers(self):
        self.check(lambda workers, servers: end_all(workers, signal.SIGTERM), signalled=True)


if __name__ == "__main__":
    program.main()
