"""Many workers, as a user starts them: threads, processes, and both."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import program
from program import ProgramTest, changed

# 250 = 5 * 48 + 10: an uneven last batch, of which eight workers get one or two samples each.
PLAIN = ["--model", "mlp-100", "--data", "synthetic", "--synthetic-shape", "1x12x12",
         "--train-size", "250", "--test-size", "61", "--lr", "0.05", "--weight-decay", "0.001",
         "--iterations", "50", "--threads", "1", "--record-every", "10"]
# Batch normalisation, and steps slow enough to be interrupted between them.
NORMALISED = ["--model", "resnet8", "--data", "synthetic", "--synthetic-shape", "3x12x12",
              "--train-size", "200", "--test-size", "32", "--batch", "16", "--threads", "1",
              "--iterations", "60", "--lr", "0.02"]
BATCH = 48


def needs_mpi(test):
    return unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")(test)


class WorkersTest(ProgramTest):
    def mpi(self, processes, *arguments, status=0):
        """Runs the program as processes of mpirun, to the end."""
        environment = {**self.environment, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        process = subprocess.Popen(
            ["mpirun", "-n", str(processes), "--oversubscribe", program.COHORT,
             *map(str, arguments)],
            cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        out, err = process.communicate(timeout=program.patiently(60))
        self.assertEqual(process.returncode, status, f"{arguments}\n{out}\n{err}")
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def runs(self):
        folder = self.folder / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


class EqualToOne(WorkersTest):
    def setUp(self):
        super().setUp()
        self.one = self.train("one", *PLAIN, "--batch", BATCH, "--quiet")
        self.expected = self.metrics(self.one, "evaluation")[-1]

    def assert_equal_to_one(self, run):
        self.assert_near(run, self.one)
        found = self.metrics(run, "evaluation")[-1]
        self.assertEqual(found["samples"], 61)
        self.assertAlmostEqual(found["loss"], self.expected["loss"], places=5)
        self.assertAlmostEqual(found["top1"], self.expected["top1"], places=9)

    def test_threads(self):
        for workers in (1, 2, 3, 4, 8):
            with self.subTest(workers=workers):
                run = self.train(f"t{workers}", *PLAIN, "--method", "all-reduce", "--workers",
                                 workers, "--batch", BATCH // workers, "--quiet")
                self.assert_equal_to_one(run)
        for workers in (2, 5):
            with self.subTest(data_parallel=workers):
                run = self.train(f"d{workers}", *PLAIN, "--method", "data-parallel", "--workers",
                                 workers, "--batch", BATCH, "--quiet")
                self.assert_equal_to_one(run)

    @needs_mpi
    def test_processes(self):
        for processes in (1, 2, 3, 4):
            with self.subTest(processes=processes):
                self.mpi(processes, "train", "--name", f"m{processes}", *PLAIN, "--method",
                         "all-reduce", "--batch", BATCH // processes, "--quiet")
                self.assert_equal_to_one(self.folder / f"runs/m{processes}")

    @needs_mpi
    def test_threads_of_processes(self):
        self.mpi(2, "train", "--name", "both", *PLAIN, "--method", "all-reduce", "--workers", 4,
                 "--batch", BATCH // 4, "--quiet")
        run = self.folder / "runs/both"
        self.assert_equal_to_one(run)
        self.assertEqual({record["rank"] for record in self.metrics(run, "step")}, {0, 1, 2, 3})

    def test_the_same_seed_gives_the_same_bits_whatever_the_buckets(self):
        first = ["--method", "all-reduce", "--workers", 3, "--batch", 16, "--quiet"]
        run = self.train("a", *PLAIN, *first)
        self.assert_same_weights(self.train("b", *PLAIN, *first), run)
        self.assert_same_weights(
            self.train("c", *PLAIN, *first, "--bucket", "0.01", "--first-bucket", "0.001"), run)


class RunDirectory(WorkersTest):
    def check(self, result, workers):
        self.assertEqual(self.runs(), ["r"])
        summary = json.loads(result.stdout)  # printed once, by one process
        self.assertEqual(summary["reason"], "finished")
        self.assertEqual(summary["steps"], 50)
        self.assertEqual(summary["this_sitting"]["steps"], 50)
        self.assertEqual(summary["last"]["samples"], 61)
        run = self.folder / "runs/r"
        self.assertEqual(summary, json.loads((run / "summary.json").read_text()))
        document = json.loads((run / "run.json").read_text())
        self.assertEqual(document["config"]["workers"], workers)
        samples, covered = 0, {}
        for record in self.metrics(run, "step"):
            samples += record["samples"]
            covered[record["rank"]] = covered.get(record["rank"], 0) + record["steps"]
            self.assertEqual(record["step"], covered[record["rank"]])
            self.assertGreater(record["bytes_sent"], 0)
            self.assertGreater(record["bytes_received"], 0)
            self.assertGreaterEqual(record["late_seconds"], record["late_data_seconds"])
        self.assertEqual(covered, {rank: 50 for rank in range(workers)})
        self.assertEqual(samples, summary["this_sitting"]["samples"])
        self.assertEqual(samples, 8 * 250 + 2 * BATCH)  # eight epochs of six steps, and two
        self.assertEqual({record["rank"] for record in self.metrics(run, "evaluation")}, {0})

    def test_of_threads(self):
        self.check(self.cohort("train", "--name", "r", *PLAIN, "--method", "all-reduce",
                               "--workers", 3, "--batch", BATCH // 3, "--json", "--quiet"), 3)

    @needs_mpi
    def test_of_processes(self):
        self.check(self.mpi(3, "train", "--name", "r", *PLAIN, "--method", "all-reduce",
                            "--batch", BATCH // 3, "--json", "--quiet"), 3)


class GoingOn(WorkersTest):
    def assert_epochs_complete(self, run, epochs, size=250):
        """Every sample of every epoch was trained on once, so far as counts can tell."""
        records = self.metrics(run, "step")
        self.assertEqual(sum(record["samples"] for record in records), epochs * size)
        self.assertAlmostEqual(records[-1]["epoch"], epochs)
        steps = [record["step"] for record in records if record["rank"] == 0]
        self.assertEqual(steps, sorted(steps))

    def test_with_other_workers_in_the_middle_of_an_epoch(self):
        for later in (2, 3, 1):
            with self.subTest(later=later):
                run = self.train(f"r{later}", *changed(PLAIN, iterations=8), "--method",
                                 "all-reduce", "--workers", 4, "--batch", 12, "--schedule",
                                 "cosine", "--quiet")
                out = self.cohort("train", "--resume", run, "--workers", later, "--iterations", 0,
                                  "--epochs", 3, "--record-every", 1, "--json", "--quiet").stdout
                self.assert_epochs_complete(run, 3)
                # 8 of 4 x 12, which are an epoch of 6 and two steps; then 250 - 96 and 250 more.
                batch = 12 * later
                steps = 8 + -(-(250 - 96) // batch) + -(-250 // batch)
                self.assertEqual(json.loads(out)["steps"], steps)
                rates = [record["lr"] for record in self.metrics(run, "step")
                         if record["rank"] == 0 and record["step"] > 8]
                self.assertEqual(rates, sorted(rates, reverse=True))

    @needs_mpi
    def test_with_processes_after_threads(self):
        run = self.train("r", *changed(PLAIN, iterations=8), "--method", "all-reduce",
                         "--workers", 4, "--batch", 12, "--quiet")
        self.mpi(2, "train", "--resume", run, "--workers", 2, "--engine", "mpi", "--iterations", 0,
                 "--epochs", 2, "--quiet")
        self.assert_epochs_complete(run, 2)

    def test_ctrl_c_saves_and_the_rest_is_exact(self):
        for method in ("all-reduce", "data-parallel"):
            flags = [*NORMALISED, "--method", method, "--workers", "2"]
            whole = self.train(f"whole-{method}", *flags, "--quiet")
            run = self.folder / f"runs/{method}"
            process = self.start("train", "--name", method, *flags, "--record-every", 1)
            self.wait_for_step(process, run, 9)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=program.patiently(60))
            self.assertEqual(process.returncode, 130, err)
            self.assertIn(f"--resume runs/{method}", err)
            self.cohort("train", "--resume", run)
            self.assert_same_weights(run, whole)
            records = self.metrics(run, "step")
            for rank in (0, 1):
                self.assertEqual(sum(r["steps"] for r in records if r["rank"] == rank), 60)

    def test_partitions_keep_their_owners(self):
        run = self.train("r", *changed(PLAIN, iterations=8), "--method", "all-reduce",
                         "--workers", 4, "--batch", 12, "--partition", "random", "--quiet")
        before = (run / "run.json").read_bytes()
        for other in (["--workers", 2], ["--workers", 2, "--batch", 24]):
            err = self.cohort("train", "--resume", run, *other, "--iterations", 20,
                              status=2).stderr
            self.assertIn("--partition", err)
        self.assertEqual((run / "run.json").read_bytes(), before)
        self.cohort("train", "--resume", run, "--iterations", 20, "--quiet")


class Refused(WorkersTest):
    def refuse(self, result, *words):
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertEqual(self.runs(), [])

    def test_local_with_workers(self):
        self.refuse(self.cohort("train", *PLAIN, "--workers", 2, status=2), "local", "all-reduce")

    def test_more_workers_than_samples_of_a_batch(self):
        self.refuse(self.cohort("train", *PLAIN, "--method", "data-parallel", "--workers", 4,
                                "--batch", 3, status=2), "4 workers")

    def test_a_bucket_that_is_no_size(self):
        for bucket in ("0", "-1", "large"):
            self.refuse(self.cohort("train", *PLAIN, "--method", "all-reduce", "--workers", 2,
                                    "--bucket", bucket, status=2), "--bucket")

    def test_a_partition_of_one(self):
        self.refuse(self.cohort("train", *PLAIN, "--partition", "random", status=2), "--workers")

    @needs_mpi
    def test_data_parallel_in_several_processes(self):
        self.refuse(self.mpi(2, "train", *PLAIN, "--method", "data-parallel", status=2),
                    "one process")


class Networks(WorkersTest):
    def test_vgg16_takes_small_images(self):
        run = self.train("vgg", "--model", "vgg16", "--data", "synthetic", "--synthetic-shape",
                         "3x32x32", "--train-size", 6, "--test-size", 2, "--batch", 2, "--workers",
                         2, "--method", "all-reduce", "--iterations", 2, "--momentum", 0,
                         "--eval-every", 0, "--checkpoint-every", 100, "--quiet")
        self.assertEqual(self.metrics(run, "step")[-1]["step"], 2)

    def test_synchronised_statistics_with_nothing_left_for_some(self):
        # 14 = 3 * 4 + 2: two of four workers have no sample in the last step.
        for model, shape in (("resnet8", "3x12x12"), ("densenet", "3x16x16"),
                             ("mobilenet_v2", "3x32x32"), ("squeezenet1_0", "3x32x32")):
            with self.subTest(model=model):
                depth = ["--depth", 10] if model == "densenet" else []
                run = self.train(model, "--model", model, "--data", "synthetic",
                                 "--synthetic-shape", shape, "--train-size", 14, "--test-size", 4,
                                 "--batch", 1, "--workers", 4, "--method", "all-reduce",
                                 "--batch-norm", "synchronised", "--iterations", 5, "--threads", 1,
                                 "--check-replicas", 1, "--peer-timeout", 30, "--lr", 0.001,
                                 "--checkpoint-every", 100, "--eval-every", 0, *depth, "--quiet")
                self.assertEqual(self.metrics(run, "step")[-1]["step"], 5)


if __name__ == "__main__":
    program.main()
