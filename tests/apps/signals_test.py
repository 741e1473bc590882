"""Ctrl-C and SIGTERM are answered in every phase, and nothing is lost by them."""

import json
import pathlib
import re
import shutil
import signal
import time

import dist_train_test
import mnist_test
import program
from ports import free_port
from program import ProgramTest, changed, patiently
from servers_test import ServersTest

# An evaluation takes half a minute, a step nothing.
LONG_EVALUATION = ["--model", "mlp-100", "--data", "synthetic", "--synthetic-shape", "1x4x4",
                   "--train-size", "64", "--test-size", "50000", "--batch", "32", "--lr", "0.02",
                   "--failpoints", "evaluation.batch=sleep:300"]


class StopTest(ProgramTest):
    def stopped(self, process, number, within_s):
        """Sends the signal; the error stream once the process has ended with 130."""
        start = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=patiently(60))
        self.assertEqual(process.returncode, 130, f"{out}\n{err}")
        self.assertLess(time.monotonic() - start, patiently(within_s))
        self.assertIn("again to quit", err)
        return err


class Evaluations(StopTest):
    def setUp(self):
        super().setUp()
        asked = self.cohort("train", "--failpoints", "x=crash", "--model", "none", status=2)
        if "no failpoints" in asked.stderr:
            self.skipTest("built without failpoints")

    def interrupted(self, name, step, *arguments):
        process = self.start("train", "--name", name, *LONG_EVALUATION, "--record-every", 1,
                             *arguments)
        run = self.folder / "runs" / name
        self.wait_for_step(process, run, step)
        time.sleep(0.5)  # it evaluates by now, mostly
        err = self.stopped(process, signal.SIGTERM, 2)
        self.assertIn("cohort train --resume", err)
        self.assertEqual(self.metrics(run, "evaluation"), [])
        self.assertEqual(self.latest(run).name, f"step-{step:09}")
        self.assertEqual(json.loads((run / "summary.json").read_text())["reason"], "interrupted")
        return run

    def test_one_on_the_way_is_given_up(self):
        run = self.interrupted("a", 2, "--epochs", 3)
        whole = self.train("whole", *changed(LONG_EVALUATION, failpoints=""), "--epochs", 3)
        self.cohort("train", "--resume", run)
        self.assert_same_weights(run, whole)

    def test_the_last_one_is_made_up_for(self):
        run = self.interrupted("b", 6, "--epochs", 3, "--eval-every", 0)
        self.cohort("train", "--resume", run)
        self.assertEqual([record["step"] for record in self.metrics(run, "evaluation")], [6])
        self.assertEqual(json.loads((run / "summary.json").read_text())["reason"], "finished")

    def test_two_workers_agree_to_give_it_up(self):
        self.interrupted("c", 1, "--epochs", 3, "--workers", 2, "--method", "all-reduce")


class WaitsForServers(StopTest, ServersTest):
    def test_one_that_is_not_there(self):
        for method in ("parameter-server", "swamp"):
            with self.subTest(method):
                process = self.start("train", *program.TINY, "--method", method, "--workers", 2,
                                     "--rank", 0, "--servers", f"127.0.0.1:{free_port()}",
                                     *(["--validation-size", 64] if method == "swamp" else []))
                time.sleep(3)  # it waits by now, mostly
                self.stopped(process, signal.SIGTERM, 1)

    def test_the_first_values_that_another_worker_brings(self):
        server = self.serve()
        waiting = self.start("train", *program.TINY, "--method", "parameter-server", "--workers", 2,
                             "--rank", 1, "--servers", server.address)
        self.says(server, "worker 1 has joined")
        err = self.stopped(waiting, signal.SIGINT, 1)
        self.assertRegex(err, "interrupted while (joining|waiting for the first parameters)")


class WaitsOfDialects(StopTest, ServersTest):
    """Each is started, waits, and ends with the first signal."""
    MNIST = ["mnist", *mnist_test.SMALL, "--worker_hosts=127.0.0.1:1,127.0.0.1:2",
             "--job_name=worker"]
    PADDLE = ["dist_train", *dist_train_test.TINY, "--update_method=pserver", "--batch_size=4"]

    def setUp(self):
        super().setUp()
        mnist_test.write_digits(self.folder / "MNIST_data")

    def trainer(self, port, rank):
        variables = {"PADDLE_TRAINERS": 2, "PADDLE_PSERVER_ENDPOINTS": f"127.0.0.1:{port}",
                     "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": rank}
        return self.start_with(variables, *self.PADDLE)

    def end_all(self, waiting):
        time.sleep(4)  # they wait by now, mostly
        for number, process in zip((signal.SIGTERM, signal.SIGINT) * len(waiting), waiting):
            with self.subTest(process.args[1:3], number=number):
                err = self.stopped(process, number, 1)
                self.assertIn("interrupted while", err)

    def test_for_a_server(self):
        server = self.serve()
        settings = changed(program.TINY, iterations=4)
        self.finish([self.worker(0, [server], *settings, workers=1)])
        self.ended(server)
        shutil.copytree(self.folder / "runs" / "job", self.folder / "runs" / "copy")
        self.end_all([
            self.start(*self.MNIST, f"--ps_hosts=127.0.0.1:{free_port()}", "--task_index=0"),
            self.start(*self.MNIST, f"--ps_hosts=127.0.0.1:{free_port()}", "--task_index=1"),
            self.trainer(free_port(), 0), self.trainer(free_port(), 1),
            self.start("train", "--resume", "runs/job", "--iterations", 8),
            self.start("train", "--resume", "runs/copy", "--iterations", 8)])

    def test_for_the_first_values_that_another_worker_brings(self):
        servers = [self.serve() for _ in range(2)]
        self.end_all([
            self.start(*self.MNIST, f"--ps_hosts={servers[0].address}", "--task_index=1"),
            self.trainer(servers[1].port, 1)])
        for server in servers:
            self.says(server, "worker 1 has joined")

    def test_the_only_worker_of_mnist_saves_and_says_how_to_go_on(self):
        server = self.serve()
        worker = self.start("mnist", *mnist_test.SMALL, f"--ps_hosts={server.address}",
                            "--worker_hosts=127.0.0.1:1", "--job_name=worker", "--name=job",
                            "--training_epochs=2000")
        run = self.folder / "logs" / "job"
        self.wait_for_step(worker, run, 100)
        err = self.stopped(worker, signal.SIGINT, 2)
        step = int(self.latest(run).name[5:])
        self.assertGreaterEqual(step, 100)
        self.assertIn(f"interrupted after step {step:,}; everything is saved. Go on with:\n"
                      "  cohort train --resume logs/job\n", err)


class WaitsForOthers(StopTest, ServersTest):
    """A worker that has pushed, and waits for one that computes for long, saves what there is."""
    SLOW = "training.compute.rank1=sleep:20000@3"

    def test_the_others_of_a_round_or_of_the_bound(self):
        settings = changed(program.TINY, iterations=6, eval_every=0, record_every=1, threads=1)
        for mode, bound, steps in (("sync", (), 2), ("ssp", ("--staleness", 1), 4)):
            with self.subTest(mode):
                server = self.serve()
                workers = {}
                for rank in (1, 0):  # the bound is that between workers who are there
                    workers[rank] = self.worker(rank, [server], *settings, "--server-mode", mode,
                                                *bound, "--failpoints", self.SLOW, name=mode)
                    self.says(server, f"worker {rank} has joined")
                run = self.folder / "runs" / mode
                self.wait_for_step(workers[0], run, 2)
                time.sleep(1)  # it waits by now, mostly
                err = self.stopped(workers[0], signal.SIGTERM, 2)
                self.assertIn("cohort train --resume", err)
                saved = self.latest(run)
                self.assertEqual(saved.name, f"step-{steps:09}")
                self.says(server, "worker 0 has left (interrupted)")
                workers[1].kill()
                server.kill()

    def test_a_server_that_does_not_answer(self):
        settings = changed(program.TINY, iterations=120, eval_every=0, record_every=1, threads=1)
        for mode in ("sync", "async"):
            with self.subTest(mode):
                server = self.serve()
                worker = self.worker(0, [server], *settings, "--server-mode", mode, "--failpoints",
                                     "training.compute.rank0=sleep:20", workers=1, name=mode)
                run = self.folder / "runs" / mode
                self.wait_for_step(worker, run, 20)
                server.send_signal(signal.SIGSTOP)
                time.sleep(0.5)  # it waits by now, mostly
                err = self.stopped(worker, signal.SIGTERM, 5)
                self.assertIn("the optimizer's state is that of its last checkpoint", err)
                self.assertIn("everything is saved", err)
                self.assertGreaterEqual(int(self.latest(run).name[5:]), 20)
                server.kill()
                server.wait()
                server = self.serve(0, server.port)
                self.cohort("train", "--resume", run)
                self.assertEqual(self.ended(server)["updates"], 120)


class Launchers(StopTest):
    def wait_until_it_hears(self, process, number):
        """Which it says in the mask of signals that it catches."""
        deadline = time.monotonic() + patiently(10)
        while time.monotonic() < deadline:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            caught = int(re.search(r"SigCgt:\s*([0-9a-f]+)", status)[1], 16)
            if caught >> (number - 1) & 1:
                return
            time.sleep(0.02)
        self.fail("it does not catch the signal")

    def test_they_say_at_once_that_they_were_heard(self):
        job = ["--", "train", *program.TINY, "--quiet", "--failpoints",
               "training.compute.rank0=sleep:100", "--epochs", 100]
        for flags in (["--servers", 1], ["--engine", "tcp"], ["--engine", "mpi"]):
            method = "parameter-server" if "--servers" in flags else "all-reduce"
            if "mpi" in flags and shutil.which("mpirun") is None:
                continue
            with self.subTest(flags=flags):
                process = self.start("launch", *flags, "-n", 1, *job, "--method", method)
                self.wait_until_it_hears(process, signal.SIGINT)
                start = time.monotonic()
                process.send_signal(signal.SIGINT)
                said = ""
                while "again to quit" not in said:
                    line = process.stderr.readline()
                    self.assertTrue(line, said)
                    said += line
                self.assertLess(time.monotonic() - start, patiently(0.1))
                said += process.communicate(timeout=patiently(20))[1]
                self.assertEqual(process.returncode, 130, said)
                self.assertEqual(said.count("again to quit"), 1, said)


if __name__ == "__main__":
    program.main()
