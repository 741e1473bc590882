"""Gossip and compressed gradients, as a user starts them."""

import json
import signal

import program
from program import ProgramTest, changed
from workers_test import NORMALISED, PLAIN, WorkersTest, needs_mpi

CHOCO = ["--method", "choco", "--compressor", "sign", "--consensus-stepsize", "0.3", "--batch", "12"]
SLOW_MO = ["--method", "slow-mo", "--slow-lr", "0.9", "--slow-buffers", "average", "--batch", "12"]
DILOCO = ["--method", "diloco", "--average-every", "20", "--outer-momentum", "0.8", "--batch", "12"]


class Engines(WorkersTest):
    @needs_mpi
    def test_threads_tcp_and_mpi_train_the_same_models(self):
        for method in (CHOCO, SLOW_MO, DILOCO):
            with self.subTest(method[1]):
                settings = [*PLAIN, *method, "--quiet"]
                threads = self.train(f"threads-{method[1]}", *settings, "--workers", 4)
                found = self.metrics(threads, "evaluation")[-1]
                self.assertGreater(found["consensus_distance"], 0)
                tcp, mpi = f"tcp-{method[1]}", f"mpi-{method[1]}"
                self.cohort("launch", "-n", 4, "--engine", "tcp", "--", "train", "--name", tcp,
                            *settings)
                self.mpi(2, "train", "--name", mpi, *settings, "--workers", 4)
                # Sums of whole parameters in another order, and divided by the rate.
                tolerance = 5e-6 if method == SLOW_MO else 1e-6
                for name in (tcp, mpi):
                    self.assert_near(self.folder / "runs" / name, threads, tolerance)

    def test_bytes_are_those_of_the_compressor(self):
        sent = {}
        for compressor in ("none", "sign"):
            run = self.train(compressor, *PLAIN, *changed(CHOCO, compressor=compressor),
                             "--workers", 4, "--quiet")
            sent[compressor] = sum(record["bytes_sent"] for record in self.metrics(run, "step"))
        self.assertLess(sent["sign"], sent["none"] / 28)


class Resume(WorkersTest):
    def test_a_run_that_was_interrupted_goes_on_to_the_same_bits(self):
        dgc = ["--method", "dgc", "--compressor", "top-k", "--batch", "12"]
        for method in (CHOCO, dgc, SLOW_MO, DILOCO):
            with self.subTest(method[1]):
                settings = [*changed(NORMALISED, batch=12), *method[:-2], "--workers", 3, "--quiet"]
                whole = self.train(f"whole-{method[1]}", *settings)
                name = f"stopped-{method[1]}"
                process = self.start("train", "--name", name, *settings, "--record-every", 1)
                self.wait_for_step(process, self.folder / "runs" / name, 10)
                process.send_signal(signal.SIGINT)
                self.finish([process], status=130)
                self.cohort("train", "--resume", f"runs/{name}", "--quiet")
                self.assert_same_weights(self.folder / "runs" / name, whole)

    def test_with_other_workers_it_says_with_how_many_it_goes_on(self):
        self.train("a", *PLAIN, *CHOCO, "--workers", 4, "--quiet")
        said = self.cohort("train", "--resume", "runs/a", "--workers", 2, "--iterations", 80,
                           status=2).stderr
        self.assertIn("--workers 4", said)


class Trouble(ProgramTest):
    def refused(self, *arguments, says):
        said = self.cohort("train", *PLAIN, *arguments, status=2).stderr
        for text in says:
            self.assertIn(text, said)

    def test_what_makes_no_sense_is_refused_with_the_reason(self):
        gossip = ["--workers", 4, "--method"]
        self.refused(*gossip, "d-psgd", "--compressor", "sign", says=["choco"])
        self.refused(*gossip, "choco", "--topology", "one-peer-exponential", says=["take exponential"])
        self.refused(*gossip, "choco", "--topology", "hypercube", "--workers", 6, says=["4 or 8"])
        self.refused(*gossip, "choco", "--topology", "margulis-expander", "--workers", 8,
                     says=["4 or 9"])
        self.refused(*gossip, "choco", "--consensus-stepsize", 0, says=["above 0"])
        self.refused(*gossip, "choco", "--consensus-stepsize", 1.5, says=["at most 1"])
        self.refused(*gossip, "choco", "--compressor", "top-k", "--compress-ratio", 1,
                     says=["compress-ratio"])
        self.refused(*gossip, "choco", "--topology", "edges", says=["--topology-file"])
        self.refused(*gossip, "all-reduce", "--compressor", "sign",
                     says=["--compressor does nothing without --method d-psgd, choco"])
        self.refused(*gossip, "choco", "--slow-lr", 2, says=["without --method slow-mo"])
        self.refused(*gossip, "choco", "--compressor", "sign", "--quantize-bits", 4,
                     says=["without --compressor qsgd"])
        self.refused(*gossip, "dgc", "--compressor", "sign", says=["ef-sign"])
        self.refused(*gossip, "deep-squeeze", "--compressor", "sign",
                     says=["--consensus-stepsize"])
        self.refused(*gossip, "choco", "--check-replicas", 10, says=["without --method data-parallel, all-reduce"])

    def test_one_worker_looks_into_its_file_of_edges_too(self):
        alone = ["--workers", 1, "--method", "d-psgd", "--topology", "edges", "--topology-file"]
        said = self.cohort("train", *PLAIN, *alone, "nowhere.txt", status=1).stderr
        self.assertIn("nowhere.txt", said)
        (self.folder / "edges.txt").write_text("0 one\n")
        self.refused(*alone, "edges.txt", says=["edges.txt:1", "'one'"])
        (self.folder / "edges.txt").write_text("0 1\n")
        self.refused(*alone, "edges.txt", says=["--workers"])
        (self.folder / "edges.txt").write_text("# nobody to talk to\n")
        self.cohort("train", *changed(PLAIN, iterations=2), *alone, "edges.txt", "--quiet")

    def test_workers_that_never_exchange_are_named(self):
        said = self.cohort("train", *PLAIN, "--method", "diloco", "--workers", 2, "--batch",
                           12).stderr
        self.assertIn("the run has 50 steps, and --method diloco exchanges every 500", said)
        said = self.cohort("train", *PLAIN, *DILOCO, "--workers", 2).stderr
        self.assertNotIn("never meet", said)

    def test_divergence_is_said_with_what_to_lower(self):
        said = self.cohort("train", *changed(PLAIN, lr=30, iterations=400), "--workers", 4,
                           *CHOCO[:-2], "--batch", 12, status=1).stderr
        self.assertIn("lower --lr", said)


class Bench(ProgramTest):
    STEP = ["--model", "mlp-100", "--batch", 8, "--steps", 3, "--warmup-steps", 1, "--threads", 1]

    def lines(self, *arguments):
        return [json.loads(line) for line in self.cohort("bench", *arguments).stdout.splitlines()]

    def test_a_step_is_timed_with_any_compressor(self):
        sent = {}
        for compressor in ("none", "sign"):
            (line,) = self.lines("step", *self.STEP, "--workers", 4, "--method", "choco",
                                 "--compressor", compressor, "--topology", "complete")
            self.assertEqual((line["compressor"], line["topology"]), (compressor, "complete"))
            sent[compressor] = line["bytes_sent_per_step"]
        self.assertLess(20 * sent["sign"], sent["none"])
        (line,) = self.lines("step", *self.STEP, "--workers", 2, "--method", "d-psgd", "--no-overlap")
        self.assertFalse(line["overlap"])
        said = self.cohort("bench", "step", *self.STEP, "--compressor", "sign", status=2).stderr
        self.assertIn("--compressor does nothing without --method d-psgd", said)

    def test_methods_are_compared_each_with_its_own_settings(self):
        lines = self.lines("scaling", *self.STEP, "--workers", "2", "--method", "all-reduce,choco",
                           "--compressor", "top-k", "--compress-ratio", 0.9, "--rounds", 2, "--json")
        self.assertEqual([line["method"] for line in lines], ["local", "all-reduce", "choco"])
        self.assertNotIn("compressor", lines[1])
        self.assertEqual(lines[2]["compressor"], "top-k")
        said = self.cohort("bench", "scaling", *self.STEP, "--modes", "all-reduce", "--compressor",
                           "sign", status=2).stderr
        self.assertIn("--compressor sign does nothing", said)


class Simulate(ProgramTest):
    def test_many_workers_need_no_thread_each(self):
        result = self.cohort("simulate", *changed(PLAIN, iterations=4), "--batch", 2, "--workers",
                             64, "--method", "choco", "--compressor", "sign", "--topology", "torus",
                             "--json")
        summary = json.loads(result.stdout)
        self.assertEqual(summary["steps"], 4)
        self.assertGreater(summary["bytes_sent"], 0)
        self.cohort("report", "runs/mlp-100-synthetic-001", "-o", "report.html")


if __name__ == "__main__":
    program.main()
