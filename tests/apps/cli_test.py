"""What the commands do when all is well."""

import json
import math
import pathlib
import subprocess
import sys

import program
from program import TINY, ProgramTest, changed, read_safetensors


def python_with_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


class Train(ProgramTest):
    def test_writes_a_complete_run_directory(self):
        run = self.train("r", *TINY, "--epochs", "2", "--record-every", "3", "--json")
        summary = json.loads(self.last.stdout)
        self.assertEqual(summary, json.loads((run / "summary.json").read_text()))
        self.assertEqual(summary["reason"], "finished")
        self.assertEqual(summary["steps"], 16)
        for pointer in ("latest", "best"):
            name = (run / "checkpoints" / pointer).read_text().split()[0]
            self.assertTrue((run / "checkpoints" / name / "model.safetensors").is_file())
        document = json.loads((run / "run.json").read_text())
        self.assertEqual(document["config"]["model"], "mlp-100")
        self.assertEqual(document["config"]["batch"], 32)
        self.assertIn("train", document["command"])
        self.assertIn("cpu", document["host"])

    def test_records_follow_the_schema(self):
        run = self.train("r", *TINY, "--epochs", "2", "--record-every", "3", "--quiet")
        self.assertEqual(self.last.stderr, "")
        steps = self.metrics(run, "step")
        self.assertEqual(sum(record["steps"] for record in steps), 16)
        self.assertEqual(sum(record["samples"] for record in steps), 512)
        for record in steps:
            for key in ("time_seconds", "rank", "step", "epoch", "loss", "top1", "top5", "lr",
                        "samples", "data_seconds", "compute_seconds", "exchange_seconds",
                        "update_seconds", "steps", "bytes_sent", "bytes_received"):
                self.assertGreaterEqual(record[key], 0, key)
        evaluations = self.metrics(run, "evaluation")
        self.assertEqual([record["step"] for record in evaluations], [8, 16])
        for record in evaluations:
            self.assertEqual(record["split"], "test")
            self.assertEqual(record["samples"], 64)
            self.assertLessEqual(record["top1"], record["top5"])
            self.assertGreater(record["seconds"], 0)
        events = [record["event"] for record in self.metrics(run, "event")]
        self.assertEqual((events[0], events[-1]), ("start", "finish"))
        self.assertEqual(events.count("checkpoint"), 2)

    def test_switches_need_no_value(self):
        for arguments, expected in (
                (["--nesterov", "--drop-last"], (True, True, True)),
                (["--shuffle", "false", "--drop-last=no"], (False, False, False)),
                (["--shuffle"], (False, False, True))):
            run = self.train("-".join(arguments).strip("-"), *TINY, "--iterations", 1, *arguments)
            config = json.loads((run / "run.json").read_text())["config"]
            self.assertEqual((config["nesterov"], config["drop-last"], config["shuffle"]), expected)

    def test_what_is_on_can_be_switched_off(self):
        for number, (arguments, expected) in enumerate((
                (["--no-shuffle"], False), (["--shuffle", "--no-shuffle"], False),
                (["--shuffle", "false", "--no-shuffle", "--shuffle"], True),
                (["--no-shuffle", "--shuffle", "yes"], True))):
            run = self.train(f"r{number}", *TINY, "--iterations", 1, "--quiet", *arguments)
            config = json.loads((run / "run.json").read_text())["config"]
            self.assertEqual(config["shuffle"], expected, arguments)
        self.assertIn("--no-shuffle", self.cohort("train", "--help").stdout)
        # It is given, so it must not change.
        self.assertIn("--shuffle cannot change",
                      self.cohort("train", "--resume", run, "--no-shuffle", status=2).stderr)
        # Only what is on has an opposite, which takes no value.
        for flag, says in (("--no-nesterov", "unknown flag --no-nesterov"),
                           ("--no-batch", "unknown flag --no-batch"),
                           ("--no-shuffle=false", "--no-shuffle takes no value"),
                           ("--no-shuffle=yes", "--no-shuffle takes no value")):
            self.assertIn(says, self.cohort("train", *TINY, flag, status=2).stderr)

    def test_names_runs_by_model_and_data_and_counts_up(self):
        for number in ("001", "002"):
            self.cohort("train", *TINY, "--iterations", 1, "--quiet")
            self.assertTrue((self.folder / f"runs/mlp-100-synthetic-{number}/run.json").is_file())

    def test_says_once_when_nothing_is_learned(self):
        """With every kind of method; and not of one that learns, nor in its first steps."""
        few = [*changed(TINY, train_size=64, batch=4), "--eval-every", 0, "--checkpoint-every", 1000]
        for name, arguments in {
                "alone": [],
                "reduced": ["--method", "all-reduce", "--workers", 2],
                "served": ["--method", "parameter-server", "--workers", 2, "--server-mode", "async"],
                "gossiping": ["--method", "d-psgd", "--workers", 2]}.items():
            for lr, steps, warns in (("0", 450, True), ("0.02", 450, False), ("0", 150, False)):
                with self.subTest(name, lr=lr, steps=steps):
                    run = self.train(f"{name}-{lr}-{steps}", *changed(few, lr=lr), *arguments,
                                     "--iterations", steps)
                    said = self.last.stderr
                    self.assertEqual(said.count("warning: in the last"), warns, said)
                    self.assertEqual(said.count("warning        in the last"), warns, said)
                    self.assertEqual("that of guessing (2.303)" in said, warns, said)
                    summary = json.loads((run / "summary.json").read_text())
                    self.assertEqual(summary["warning"] != "", warns)
                    # Workers of servers watch each for itself.
                    ranks = [record["rank"] for record in self.metrics(run, "event")
                             if record["event"] == "not-learning"]
                    self.assertEqual(ranks.count(0), warns)
                    self.assertEqual(len(set(ranks)), len(ranks))

    def test_stops_at_the_target_accuracy(self):
        self.train("r", *TINY, "--epochs", 50, "--target-accuracy", "0.2", "--json", "--quiet")
        summary = json.loads(self.last.stdout)
        self.assertEqual(summary["reason"], "target-reached")
        self.assertGreaterEqual(summary["last"]["top1"], 0.2)
        self.assertLess(summary["steps"], 400)


class Repeat(ProgramTest):
    def test_a_run_json_repeats_its_run(self):
        first = self.train("first", *changed(TINY, iterations=11, optimizer="adam", lr=0.003,
                                             seed=5), "--drop-last")
        second = self.train("second", "--config", "runs/first/run.json")
        self.assert_same_weights(first, second)

    def test_flags_go_before_a_configuration_file(self):
        (self.folder / "plain.json").write_text(json.dumps(
            {"model": "mlp-100", "data": "synthetic", "synthetic-shape": "1x12x12", "lr": 0.02,
             "train-size": 256, "test-size": 64, "batch": 32, "iterations": 3, "seed": 9}))
        by_file = self.train("by-file", "--config", "plain.json", "--seed", 1)
        by_flags = self.train("by-flags", *TINY, "--iterations", 3)
        other = self.train("other", "--config", "plain.json")
        self.assert_same_weights(by_file, by_flags)
        with self.assertRaises(AssertionError):
            self.assert_same_weights(by_file, other)

    def test_loader_threads_do_not_matter(self):
        runs = [self.train(f"r{threads}", *TINY, "--iterations", 20, "--loader-threads", threads)
                for threads in (0, 1, 3)]
        self.assert_same_weights(runs[0], runs[1])
        self.assert_same_weights(runs[0], runs[2])


class Eval(ProgramTest):
    SYNTHETIC = TINY[:6] + ["--test-size", "64"]

    def setUp(self):
        super().setUp()
        self.run_folder = self.train("r", *TINY, "--epochs", 3, "--keep", 3, "--json")
        self.summary = json.loads(self.last.stdout)

    def eval_lines(self, *arguments, status=0):
        self.last = self.cohort("eval", *arguments, "--json", status=status)
        return [json.loads(line) for line in self.last.stdout.splitlines()]

    def test_lists_all_checkpoints_of_a_run(self):
        lines = self.eval_lines("runs/r")
        self.assertEqual(len(lines), 3)
        recorded = [record["top1"] for record in self.metrics(self.run_folder, "evaluation")]
        self.assertEqual([line["top1"] for line in lines], recorded)
        self.assertEqual(sum("latest" in line["mark"] for line in lines), 1)
        (best,) = [line for line in lines if "best" in line["mark"]]
        self.assertEqual(best["top1"], self.summary["best"]["top1"])
        text = self.cohort("eval", "runs/r").stdout
        self.assertEqual(len(text.splitlines()), 3)
        self.assertIn("latest", text)

    def test_evaluates_the_training_set_too(self):
        (line,) = self.eval_lines(self.latest(self.run_folder), "--split", "train")
        self.assertEqual(line["samples"], 256)

    def test_a_run_of_a_gpu_is_evaluated_on_a_cpu_in_float32(self):
        expected = self.eval_lines("runs/r")
        file = self.run_folder / "run.json"
        run = json.loads(file.read_text())
        del run["sha256"]
        run["config"].update(device="cuda", precision="bf16")
        file.write_text(json.dumps(run))
        lines = self.eval_lines("runs/r", "--device", "cpu")
        self.assertEqual([line["loss"] for line in lines], [line["loss"] for line in expected])
        refused = self.cohort("eval", "runs/r", "--device", "cpu", "--precision", "bf16", status=2)
        self.assertIn("--precision bf16 is for GPUs", refused.stderr)

    def test_an_exported_model_scores_as_its_checkpoint(self):
        self.cohort("export", "runs/r", "-o", "best.safetensors")
        (line,) = self.eval_lines("best.safetensors", *self.SYNTHETIC)
        self.assertEqual(line["top1"], self.summary["best"]["top1"])
        self.assertAlmostEqual(line["loss"], self.summary["best"]["loss"], places=5)
        # Weights that nobody exported do not say what they are.
        plain = self.latest(self.run_folder) / "model.safetensors"
        self.assertIn("--model", self.cohort("eval", plain, status=2).stderr)
        (line,) = self.eval_lines(plain, *self.SYNTHETIC)
        self.assertEqual(line["top1"], self.summary["last"]["top1"])

    def test_starting_from_an_exported_model_starts_there(self):
        self.cohort("export", "runs/r", "-o", "best.safetensors")
        self.train("s", *changed(TINY, lr=0, iterations=1, init="best.safetensors"), "--json")
        summary = json.loads(self.last.stdout)
        self.assertEqual(summary["last"]["top1"], self.summary["best"]["top1"])
        self.assertAlmostEqual(summary["last"]["loss"], self.summary["best"]["loss"], places=5)

    def test_skips_and_names_damaged_checkpoints(self):
        damaged = self.latest(self.run_folder)
        content = bytearray((damaged / "model.safetensors").read_bytes())
        content[-1] ^= 1
        (damaged / "model.safetensors").write_bytes(content)
        lines = self.eval_lines("runs/r", status=1)
        self.assertEqual(len(lines), 2)
        self.assertIn(damaged.name, self.last.stderr)

    def test_exports_by_step_and_says_which_there_are(self):
        self.cohort("export", "runs/r", "--which", 8, "-o", "eight")
        checkpoint = self.run_folder / "checkpoints/step-000000008"
        self.assertEqual(read_safetensors(self.folder / "eight"),
                         read_safetensors(checkpoint / "model.safetensors"))
        err = self.cohort("export", "runs/r", "--which", 9, status=2).stderr
        self.assertIn("24", err)

    def test_pytorch_reads_an_exported_model(self):
        reader = program.SOURCE / "docs" / "load_in_pytorch.py"
        python = python_with_torch()
        if python is None:
            self.skipTest("no PyTorch here")
        self.assertTrue(reader.is_file(), reader)
        self.cohort("export", "runs/r", "-o", "best.safetensors")
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import load_in_pytorch as l\n"
                  "for n, t in sorted(l.load_safetensors(sys.argv[2]).items()):\n"
                  "  print(n, list(t.shape), t.contiguous().numpy().tobytes().hex(), sep='|')")
        out = subprocess.run([python, "-B", "-c", script, reader.parent, "best.safetensors"],
                             cwd=self.folder, text=True, capture_output=True, check=True).stdout
        found = {}
        for line in out.splitlines():
            name, shape, data = line.split("|")
            found[name] = (json.loads(shape), bytes.fromhex(data))
        expected = read_safetensors(self.folder / "best.safetensors")
        self.assertEqual(found, {name: entry[1:] for name, entry in expected.items()})
        shown = subprocess.run([python, reader, "best.safetensors"], cwd=self.folder,
                               text=True, capture_output=True, check=True).stdout
        for name in expected:
            self.assertIn(name, shown)


class Tell(ProgramTest):
    def test_version_and_help(self):
        self.assertRegex(self.cohort("--version").stdout, r"cohort \d+\.\d+")
        self.assertIn("train", self.cohort("--help").stdout)
        for command in ("train", "eval", "export", "list", "data", "bench"):
            self.assertIn("Usage", self.cohort(command, "--help").stdout, command)
        self.assertIn("--weight-decay", self.cohort("train", "--help").stdout)

    def test_list_knows_every_kind(self):
        document = json.loads(self.cohort("list", "--json").stdout)
        for kind in ("models", "data", "methods", "optimizers", "schedules"):
            for entry in document[kind]:
                self.assertTrue(entry["name"] and entry["description"], kind)
        names = [entry["name"] for entry in document["models"]]
        text = self.cohort("list", "models").stdout
        for name in names:
            self.assertIn(name, text)
        self.assertIn("models", self.cohort("list", "nonsense", status=2).stderr)

    def test_data_tells_what_is_there(self):
        reports = json.loads(self.cohort("data", "--json").stdout)
        self.assertIn("cifar-10", [report["name"] for report in reports])
        self.assertIn("looked in", self.cohort("data").stdout)

    def test_bench_step_prints_one_json_object(self):
        out = self.cohort("bench", "step", "--model", "mlp-100", "--batch", 8, "--steps", 2).stdout
        (line,) = out.splitlines()
        result = json.loads(line)
        for key in ("step_ms", "samples_per_s", "data_ms", "compute_ms", "exchange_ms",
                    "update_ms"):
            self.assertTrue(math.isfinite(result[key]) and result[key] >= 0, key)
        self.assertGreater(result["samples_per_s"], 0)
        parts = sum(result[key] for key in ("data_ms", "compute_ms", "exchange_ms", "update_ms"))
        self.assertLessEqual(parts, result["step_ms"] * 1.001)
        self.assertFalse((self.folder / "runs").exists())


class CodePaths(ProgramTest):
    def core(self, **environment):
        """The kernels that OpenBLAS chose."""
        self.environment.update(environment, OPENBLAS_VERBOSE="2")
        for line in self.cohort("--version").stderr.splitlines():
            if line.startswith("Core:"):
                return line.split()[1]
        self.skipTest("libtorch does not use OpenBLAS here")

    def test_openblas_takes_the_newest_kernels(self):
        cpu = pathlib.Path("/proc/cpuinfo").read_text()
        if "avx512f" in cpu and "avx512bw" in cpu and "avx512dq" in cpu and "avx512vl" in cpu:
            self.assertEqual(self.core(), "SkylakeX")
        elif "avx2" in cpu:
            self.assertEqual(self.core(), "Haswell")
        else:
            self.skipTest("an older CPU")

    def test_openblas_obeys_the_user(self):
        self.assertEqual(self.core(OPENBLAS_CORETYPE="Haswell"), "Haswell")


class Demo(ProgramTest):
    def test_writes_no_escape_sequences_into_a_file(self):
        fake = self.folder / "cohort"
        fake.write_text("#!/bin/sh\necho \"$@\"\n")
        fake.chmod(0o755)
        done = subprocess.run([program.SOURCE / "tools/demo", fake, self.folder / "runs"], text=True,
                              env={**self.environment, "TERM": "xterm"}, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("two workers average every gradient", done.stdout)
        self.assertNotIn("\x1b", done.stdout + done.stderr)


if __name__ == "__main__":
    program.main()
