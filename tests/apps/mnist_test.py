"""`cohort mnist`: the published commands, with separate ps and worker processes on this host."""

import json
import pathlib
import random
import re
import signal
import struct
import time
import unittest

import program
from ports import free_port
from program import ProgramTest

LINE = re.compile(r"Step: (?P<step>\d+),  Epoch: (?P<epoch>[ \d]\d),  Batch: (?P<batch>[ \d]{2}\d) "
                  r"of (?P<batches>[ \d]{2}\d),  Cost: (?P<cost>\d+\.\d{4}),  "
                  r"AvgTime: \d+\.\d\dms")
END = [re.compile(r"Test-Accuracy: (?P<accuracy>\d\.\d\d)"), re.compile(r"Total Time: \d+\.\d\ds"),
       re.compile(r"Final Cost: (?P<cost>\d+\.\d{4})"), re.compile("done")]

TRAIN, VALIDATION, TEST = 2300, 100, 200
EPOCHS = 2
BATCHES = (TRAIN - VALIDATION) // 20
SMALL = ["--data_dir", "MNIST_data", "--logs_path", "logs", "--batch_size", 20,
         f"--training_epochs={EPOCHS}", "--validation_size", VALIDATION]


def write_digits(folder):
    """Noise with a bright spot whose place is the label, in MNIST's format."""
    folder.mkdir(parents=True)
    random.seed(1)
    for split, count in (("train", TRAIN), ("t10k", TEST)):
        labels = bytes(random.randrange(10) for _ in range(count))
        images = bytearray(random.randbytes(count * 784))
        for i, label in enumerate(labels):
            for row in range(4):
                start = i * 784 + (4 + 2 * label + row) * 28
                images[start:start + 28] = b"\xff" * 28
        (folder / f"{split}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 0x803, count, 28, 28) + images)
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, count) + labels)


class Mnist(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment["OMP_WAIT_POLICY"] = "passive"
        write_digits(self.folder / "MNIST_data")

    def hosts(self, servers=1, workers=1):
        ports = [free_port() for _ in range(servers + workers)]
        self.ps_hosts = ",".join(f"127.0.0.1:{port}" for port in ports[:servers])
        self.worker_hosts = ",".join(f"127.0.0.1:{port}" for port in ports[servers:])

    def task(self, job, index, *arguments):
        return self.start("mnist", f"--ps_hosts={self.ps_hosts}",
                          f"--worker_hosts={self.worker_hosts}", f"--job_name={job}",
                          f"--task_index={index}", *SMALL, *arguments)

    def ended(self, process, status=0):
        out, err = process.communicate(timeout=program.patiently(60))
        self.assertEqual(process.returncode, status, f"{process.args}\n{out}\n{err}")
        return out, err

    def check_lines(self, out):
        """The lines of the epochs; all others are those of the end."""
        lines = out.splitlines()
        for line, pattern in zip(lines[-4:], END):
            self.assertTrue(pattern.fullmatch(line), line)
        matches = [LINE.fullmatch(line) for line in lines[:-4]]
        self.assertTrue(all(matches), lines)
        self.assertEqual([(int(match["epoch"]), int(match["batch"]), int(match["batches"]))
                          for match in matches],
                         [(epoch, batch, BATCHES) for epoch in range(1, EPOCHS + 1)
                          for batch in (100, BATCHES)])
        self.assertEqual(END[2].fullmatch(lines[-2])["cost"], matches[-1]["cost"])
        return matches

    def local(self, *arguments):
        result = self.cohort("mnist", "--local", *SMALL, *arguments)
        return self.check_lines(result.stdout), result.stdout


class Alone(Mnist):
    def test_prints_the_examples_lines_and_keeps_a_run_directory(self):
        matches, out = self.local("--learning_rate", 0.05)
        self.assertEqual([int(match["step"]) for match in matches],
                         [100, BATCHES, BATCHES + 100, 2 * BATCHES])
        self.assertLess(float(matches[-1]["cost"]), float(matches[0]["cost"]))
        runs = list((self.folder / "logs").iterdir())
        self.assertEqual(len(runs), 1)
        config = json.loads((runs[0] / "run.json").read_text())["config"]
        self.assertEqual((config["model"], config["train-skip"], config["lr"], config["momentum"]),
                         ("mlp-100", VALIDATION, 0.05, 0))
        steps = self.metrics(runs[0], "step")
        # The cost that is shown is that of one batch.
        shown = {int(match["step"]): float(match["cost"]) for match in matches}
        for record in steps:
            if record["step"] in shown:
                self.assertEqual(record["steps"], 1)
                self.assertAlmostEqual(record["loss"], shown[record["step"]], delta=6e-5)
        self.assertEqual(sum(record["samples"] for record in steps), EPOCHS * BATCHES * 20)
        self.assertEqual(len(self.metrics(runs[0], "evaluation")), 1)
        self.assertEqual(self.metrics(runs[0], "evaluation")[0]["samples"], TEST)

    def test_refuses_what_makes_no_sense_with_advice(self):
        for arguments, advice in (
                (["--job_name=ps"], "--ps_hosts is needed"),
                ([], "--job_name says what this process is"),
                (["--local", "--task_index=0"], "--local trains without servers"),
                (["--ps_hosts=a", "--worker_hosts=b:1", "--job_name=ps"], "takes addresses"),
                (["--ps_hots=a:1"], "did you mean --ps_hosts?")):
            result = self.cohort("mnist", *arguments, status=2)
            self.assertIn(advice, result.stderr)

    def test_explains_itself(self):
        self.hosts()
        words = ["mnist", "--explain", f"--ps_hosts={self.ps_hosts}",
                 f"--worker_hosts={self.worker_hosts}"]
        worker = self.cohort(*words, "--job_name=worker").stdout
        self.assertTrue(worker.startswith("cohort train --model mlp-100"), worker)
        self.assertIn("--server-mode async", worker)
        server = self.cohort(*words, "--job_name=ps").stdout
        self.assertEqual(server, f"cohort serve-parameters --listen {self.ps_hosts} --index 0 "
                         "--workers 1\n")


class Processes(Mnist):
    def test_one_worker_learns_as_one_alone(self):
        self.hosts()
        worker = self.task("worker", 0)  # in any order
        server = self.task("ps", 0)
        out, _ = self.ended(worker)
        _, err = self.ended(server)  # by itself
        self.assertIn(f"ps 0 of 1 at {self.ps_hosts}: waiting for 1 worker", err)
        matches = self.check_lines(out)
        alone, _ = self.local()
        self.assertEqual([match["step"] for match in matches],
                         [match["step"] for match in alone])
        for ours, other in zip(matches, alone):
            self.assertAlmostEqual(float(ours["cost"]), float(other["cost"]), delta=1e-3)

    def test_two_workers_and_two_servers_make_all_updates(self):
        self.hosts(servers=2, workers=2)
        tasks = [self.task("ps", 0), self.task("worker", 1), self.task("worker", 0),
                 self.task("ps", 1)]
        outs = [self.ended(task)[0] for task in tasks]
        steps = [int(self.check_lines(out)[-1]["step"]) for out in outs[1:3]]
        # Each sees the updates of both, its own last one included.
        self.assertEqual(max(steps), 2 * EPOCHS * BATCHES)
        self.assertGreaterEqual(min(steps), EPOCHS * BATCHES)

    def test_synchronous_replicas_make_one_update_of_all(self):
        self.hosts(workers=2)
        tasks = [self.task("ps", 0, "--sync")] + [self.task("worker", i, "--sync")
                                                  for i in range(2)]
        outs = [self.ended(task)[0] for task in tasks]
        for out in outs[1:]:
            self.assertEqual([int(match["step"]) for match in self.check_lines(out)],
                             [100, BATCHES, BATCHES + 100, 2 * BATCHES])

    def test_tf_config_says_the_same(self):
        self.hosts()
        cluster = {"ps": [self.ps_hosts], "chief": [self.worker_hosts]}

        def task(kind):
            self.environment["TF_CONFIG"] = json.dumps(
                {"cluster": cluster, "task": {"type": kind, "index": 0}})
            return self.start("mnist", *SMALL)
        server, worker = task("ps"), task("chief")
        self.assertEqual(self.check_lines(self.ended(worker)[0])[-1]["step"],
                         str(EPOCHS * BATCHES))
        self.ended(server)


class Trouble(Mnist):
    def test_the_last_worker_says_what_the_model_lacks(self):
        self.hosts(workers=2)
        epochs = 250  # longer than it takes the server to give up one that was killed
        tasks = [self.task(job, index, "--training_epochs", epochs, "--name", "job", "--idle_exit", 2)
                 for job, index in (("ps", 0), ("worker", 0), ("worker", 1))]
        self.wait_for_step(tasks[2], self.folder / "logs" / "job-worker1", 99)
        tasks[2].kill()
        _, err = self.ended(tasks[1], status=1)
        own = epochs * BATCHES
        self.assertRegex(err, rf"the model has not the {2 * own:,} updates asked for but [\d,]+ "
                              rf"\(gradients: {own:,} of worker 0, [\d,]+ of worker 1\)")
        _, log = self.ended(tasks[0], status=1)
        self.assertIn("worker 0: done; worker 1: given up", log)

    def test_addresses_of_a_network_need_a_secret(self):
        for job in ("ps", "worker"):
            result = self.cohort("mnist", "--ps_hosts=10.10.10.94:2222",
                                 "--worker_hosts=10.10.10.191:2222", f"--job_name={job}",
                                 "--task_index=0", *SMALL, status=2)
            self.assertIn("cohort token", result.stderr)
            self.assertRegex(result.stderr, "--token[-_]file")
            self.assertIn("--insecure", result.stderr)

    def test_a_worker_names_the_server_that_does_not_come(self):
        self.hosts()
        worker = self.task("worker", 0, "--peer_timeout", 1)
        out, err = worker.communicate(timeout=program.patiently(60))
        self.assertEqual(worker.returncode, 1, err)
        self.assertIn(self.ps_hosts, err)
        self.assertNotIn("done", out)

    def test_other_settings_are_refused_once_in_the_examples_words(self):
        self.hosts(workers=2)
        server = self.task("ps", 0)
        self.ended(self.task("worker", 0))
        refused = self.task("worker", 1, "--seed", 7, "--learning_rate", 0.1)
        _, err = refused.communicate(timeout=program.patiently(60))
        self.assertEqual(refused.returncode, 2, err)
        said = ["--learning_rate is 0.1 here and 0.0005 at the others",
                "--seed is 7 here and 1 at the others"]
        self.assertEqual(err.splitlines()[-1],
                         "cohort: server 0 will not have worker 1: " + "; ".join(said))
        server.send_signal(signal.SIGINT)
        _, log = server.communicate(timeout=program.patiently(60))
        for text in (err, log):
            self.assertEqual(text.count("--seed"), 1, text)
        self.assertEqual([run.name for run in (self.folder / "logs").iterdir()],
                         ["mlp-100-mnist-001"])

    def test_what_a_server_was_told_is_compared(self):
        self.hosts()
        server = self.task("ps", 0, "--learning_rate", 0.7, "--sync")
        refused = self.task("worker", 0)
        _, err = refused.communicate(timeout=program.patiently(60))
        self.assertEqual(refused.returncode, 2, err)
        self.assertIn("--learning_rate is 0.0005 here and 0.7 where server 0 was started", err)
        self.assertIn('--sync (or not): the update is "async" here and "sync" where server 0', err)
        self.ended(self.task("worker", 0, "--learning_rate", 0.7, "--sync"))
        self.ended(server)

    def test_a_server_without_sync_is_asynchronous(self):
        self.hosts()
        server = self.task("ps", 0)
        refused = self.task("worker", 0, "--sync")
        _, err = refused.communicate(timeout=program.patiently(60))
        self.assertEqual(refused.returncode, 2, err)
        self.assertIn('--sync (or not): the update is "sync" here and "async" where server 0', err)
        self.ended(self.task("worker", 0))
        self.ended(server)

    def test_a_server_says_nothing_of_flags_it_was_not_given(self):
        self.hosts()
        ps = self.start("mnist", f"--ps_hosts={self.ps_hosts}", "--job_name=ps",
                        f"--worker_hosts={self.worker_hosts}")
        self.ended(self.task("worker", 0, "--learning_rate", 0.01))
        self.ended(ps)

    def test_a_job_of_another_number_of_workers_is_refused(self):
        self.hosts(workers=3)
        server = self.task("ps", 0)
        self.worker_hosts = self.worker_hosts.split(",")[0]
        refused = self.task("worker", 0)
        _, err = refused.communicate(timeout=program.patiently(60))
        self.assertEqual(refused.returncode, 2, err)
        self.assertIn("the number of --worker_hosts is 1 here and 3 where server 0 was started", err)
        server.kill()

    def test_a_server_waits_for_a_worker_that_never_comes(self):
        self.hosts(workers=2)
        idle_s = 3
        server = self.task("ps", 0, "--idle_exit", idle_s)
        self.ended(self.task("worker", 0))
        left = time.monotonic()
        _, err = self.ended(server, status=1)
        self.assertGreater(time.monotonic() - left, idle_s - 1)
        self.assertIn("no worker has been here for too long; worker 0: done; worker 1: never came",
                      err)

    def test_a_server_without_workers_ends(self):
        self.hosts()
        _, err = self.ended(self.task("ps", 0, "--idle_exit", 0.5), status=1)
        self.assertIn("waiting for 1 worker", err)


REAL = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data" / "mnist"


@unittest.skipUnless((REAL / "train-images-idx3-ubyte.gz").exists(), "MNIST is not here")
class RealDigits(Mnist):
    def test_one_worker_scores_as_one_alone(self):
        self.hosts()
        flags = ["--data_dir", REAL, "--logs_path", "logs", "--training_epochs", 1]
        names = [f"--ps_hosts={self.ps_hosts}", f"--worker_hosts={self.worker_hosts}"]
        server = self.start("mnist", *names, "--job_name=ps", *flags)
        worker = self.start("mnist", *names, "--job_name=worker", "--name", "one", *flags)
        out, _ = self.ended(worker)
        self.ended(server)
        last = LINE.fullmatch(out.splitlines()[-5])
        self.assertEqual((last["step"], last["batch"], last["batches"]), ("550", "550", "550"))
        self.cohort("mnist", "--local", "--name", "alone", *flags)
        scores = [self.metrics(self.folder / "logs" / name, "evaluation")[0]["top1"]
                  for name in ("one", "alone")]
        self.assertAlmostEqual(scores[0], scores[1], delta=0.005)


if __name__ == "__main__":
    program.main()
