"""What the program says to somebody who is new to it, and what it does with what they meant."""

import fcntl
import json
import os
import pty
import re
import resource
import struct
import subprocess
import termios
import time

import program
from mnist_test import write_digits
from program import SLOWER, TINY, ProgramTest, changed


class Words(ProgramTest):
    def refused(self, *arguments, says, never=(), status=2):
        err = self.cohort(*arguments, status=status).stderr
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, err, arguments)
        for text in never:
            self.assertNotIn(text, err, arguments)

    def test_flags_of_other_tools(self):
        for flag, ours in (("--batch-size", "--batch"), ("--batch_size", "--batch"), ("-b", "--batch"),
                           ("--learning-rate=1", "--lr"), ("--num-workers", "--loader-threads"),
                           ("--world-size", "--workers"), ("--nproc", "--workers"),
                           ("--wd", "--weight-decay"), ("--bs", "--batch")):
            self.refused("train", flag, 4, says=f"unknown flag {flag.split('=')[0]}: here it is {ours}\n")
        self.refused("train", "--amp", says=["float32", "leave it out"], never=["--name"])
        # The older systems' flags are known by ours.
        self.refused("mnist", "--lr", 0.1, says="here it is --learning_rate\n")
        (self.folder / "c.json").write_text('{"batch_size": 4}')
        self.refused("train", "--config", "c.json", says="here it is 'batch'")

    def test_commands_of_other_tools(self):
        self.refused("sweep", says="cohort train once for each", never=["swamp"])
        self.refused("evaluate", says="cohort eval")
        self.refused("trian", says="did you mean 'train'?")

    def test_help_is_a_command(self):
        self.assertEqual(self.cohort("help").stdout, self.cohort("--help").stdout)
        for command in (["train"], ["bench", "step"]):
            self.assertEqual(self.cohort("help", *command).stdout,
                             self.cohort(*command, "--help").stdout)
        self.refused("help", "trian", says="did you mean 'train'?")

    def test_help_fits_the_terminal_and_begins_with_what_matters(self):
        self.environment["COLUMNS"] = "72"
        for command in ("train", "launch", "eval"):
            for line in self.cohort(command, "--help").stdout.splitlines():
                # Examples are to be copied as they are.
                self.assertTrue(len(line) <= 72 or line.startswith("  cohort"), line)
        text = self.cohort("train", "--help").stdout
        self.assertLess(text.index("--epochs"), text.index("--power-rank"))
        self.assertLess(text.index("--lr "), text.index("--bucket"))

    def test_an_engine_that_was_left_out_of_the_build(self):
        engines = json.loads(self.cohort("list", "--json").stdout)["engines"]
        if "nccl" in [engine["name"] for engine in engines]:
            self.skipTest("this build has NCCL")
        self.refused("train", *TINY, "--engine", "nccl", says=["not in this build", "leave --engine out"])

    def test_broken_json_is_found_by_line_and_column(self):
        (self.folder / "c.json").write_text('{\n  "model": "lenet",\n  "batch": 3x\n}\n')
        self.refused("train", "--config", "c.json", says=["c.json", "line 3, column 13", "JSON"])

    def test_launch_without_dashes(self):
        for words in (["-n", 2, "train"], ["--engine", "tcp", "-n", "2", "train"],
                      ["--engine=tcp", "-n2", "--dry-run", "train"]):
            out = self.cohort("launch", "--dry-run", "--oversubscribe", *words, "--lr", 1).stdout
            self.assertIn("train --lr 1", out)
        self.refused("launch", "-n", 2, "trian", "--lr", 1, says="did you mean 'train'?")

    def test_launch_says_what_is_missing(self):
        for words in (["train"], ["--engine", "tcp", "train"], ["--", "train"], []):
            self.refused("launch", *words, says=["-n is required", "cohort launch -n 2 -- train"],
                         never=["unknown flag"])
        for words in (["-n", 2, "--"], ["-n2"], ["-n", 2, "--dry-run"]):
            self.refused("launch", *words, says=["a command is required", "-- train"],
                         never=["unknown flag"])
        for words in (["foo"], ["help"], ["-n", 2, "foo"], ["-n", 2, "--", "foo"]):
            self.refused("launch", *words, says=[f"unknown command to launch '{words[-1]}'",
                                                 "train, eval"], never=["unknown flag"])
        for words in (["-np", 2, "--", "train"], ["-np2", "train"]):
            self.refused("launch", *words, says="unknown flag -np: here it is -n\n")

    def test_flags_of_other_tools_at_other_commands(self):
        self.refused("eval", "runs/x", "--batch-size", 4, says="here it is --eval-batch\n")
        self.refused("eval", "runs/x", "-b", 4, says="here it is --eval-batch\n")
        self.refused("report", "runs/x", "--output", "a.pdf", says="here it is --out\n")
        self.refused("export", "runs/x", "--out", "a", says="here it is --output\n")
        self.refused("swamp", "eval", "--data-dir", "x", says="here it is --eval-data-dir\n")
        for flag in ("--nproc", "--np", "--nproc_per_node"):
            for command in (["--", "train"], ["train"]):
                self.refused("launch", flag, 2, *command, says=f"unknown flag {flag}: here it is -n\n")
            self.refused("launch", f"{flag}=2", "train", says=f"unknown flag {flag}: here it is -n\n")

    def test_a_torus_that_is_a_ring(self):
        self.train("seven", *changed(TINY, workers=7, method="d-psgd", topology="torus", iterations=1))
        self.assertIn("6 or 8 workers", self.last.stderr)
        self.assertIn("6 or 8 workers", self.cohort("topology", "torus", "-n", 7).stdout)
        self.train("six", *changed(TINY, workers=6, method="d-psgd", topology="torus", iterations=1))
        self.assertNotIn("torus", self.last.stderr)


class Runs(ProgramTest):
    def test_more_workers_for_a_run_of_one(self):
        self.train("r", *TINY, "--iterations", 1)
        err = self.cohort("train", "--resume", "runs/r", "--workers", 4, status=2).stderr
        commands = re.findall(r"^  cohort (.*)$", err, re.M)
        self.assertEqual(len(commands), 2, err)
        # What it says to do works, and the last ... is what the user adds.
        self.cohort(*commands[0].split())
        self.cohort(*commands[1].replace("...", "").split(), *TINY, "--iterations", 1)

    def test_a_finished_run_says_so_and_keeps_its_summary(self):
        run = self.train("r", *TINY, "--epochs", 1)
        summary = (run / "summary.json").read_bytes()
        err = self.cohort("train", "--resume", run).stderr
        self.assertIn("is finished", err)
        self.assertIn("raise --epochs", err)
        self.assertNotIn("samples/s", err)
        self.assertEqual(summary, (run / "summary.json").read_bytes())
        advice = re.search(r"cohort (train --resume .*)$", err, re.M).group(1)
        self.cohort(*advice.split())
        self.assertEqual(json.loads((run / "summary.json").read_text())["steps"], 16)
        err = self.cohort("train", "--resume", run, "--epochs", 1, status=2).stderr
        self.assertIn("raise --epochs", err)

    def test_an_exported_model_knows_what_it_is(self):
        self.train("r", *changed(TINY, model="wideresnet", depth=10, widen=1, dropout=0.1,
                                 test_size=40, epochs=1), "--json")
        best = json.loads(self.last.stdout)["best"]
        self.cohort("export", "runs/r", "-o", "m.safetensors")
        (self.folder / "runs").rename(self.folder / "gone")
        result = json.loads(self.cohort("eval", "m.safetensors", "--json").stdout)
        self.assertEqual((result["samples"], result["top1"]), (40, best["top1"]))

    def test_weights_that_are_no_numbers(self):
        self.train("r", *TINY, "--iterations", 1)
        self.cohort("export", "runs/r", "-o", "m.safetensors")
        content = bytearray((self.folder / "m.safetensors").read_bytes())
        content[-4:] = struct.pack("<f", float("nan"))
        (self.folder / "m.safetensors").write_bytes(content)
        err = self.cohort("train", *TINY, "--init", "m.safetensors", status=1).stderr
        self.assertIn("m.safetensors: fc2.bias has values that are not numbers", err)
        self.assertNotIn("--lr", err)

    def test_an_evaluation_that_is_no_number(self):
        self.train("r", *TINY, "--iterations", 1)
        self.cohort("export", "runs/r", "-o", "m.safetensors")
        content = bytearray((self.folder / "m.safetensors").read_bytes())
        content[-4:] = struct.pack("<f", float("nan"))
        (self.folder / "m.safetensors").write_bytes(content)
        done = self.cohort("eval", "m.safetensors", status=1)
        self.assertIn("test loss not a number  top-1", done.stdout)
        self.assertIn("warning: m.safetensors: its loss is not a number", done.stderr)
        done = self.cohort("eval", "m.safetensors", "--json", status=1)
        self.assertIsNone(json.loads(done.stdout)["loss"])

    def test_a_first_loss_that_is_no_number_is_not_blamed_on_the_rate(self):
        # The weights are fine, but no loss of theirs is.
        self.train("r", *TINY, "--iterations", 1)
        self.cohort("export", "runs/r", "-o", "m.safetensors")
        path = self.folder / "m.safetensors"
        content = path.read_bytes()
        start = 8 + struct.unpack("<Q", content[:8])[0]
        numbers = (len(content) - start) // 4
        path.write_bytes(content[:start] + struct.pack("<f", 3e38) * numbers)
        for lr in ("0", "0.1"):
            err = self.cohort("train", *changed(TINY, lr=lr), "--init", path, status=1).stderr
            self.assertIn("the learning rate is not the cause", err)
            self.assertNotIn("lower --lr", err)


class Dialects(ProgramTest):
    def test_advice_names_the_flags_of_the_command(self):
        err = self.cohort("choco", "--arch", "resnet8", "--data", "synthetic", "--synthetic_shape",
                          "3x4x4", "--train_size", 3, "--test_size", 4, "--batch_size", 1,
                          "--n_mpi_process", 1, "--optimizer", "sgd", status=1).stderr
        self.assertIn("use a larger --batch_size or --drop-last (of cohort train)", err)
        self.train("r", *changed(SLOWER, synthetic_shape="3x4x4", batch=1), status=1)
        self.assertIn("use a larger --batch or --drop-last\n", self.last.stderr)

    def test_a_method_that_takes_another_compressor(self):
        err = self.cohort("choco", "--arch", "resnet8", "--data", "synthetic", "--n_mpi_process", 2,
                          "--optimizer", "dgc", "--comm_op", "sign", status=2).stderr
        self.assertIn("--optimizer dgc needs --comm_op compress_top_k, compress_random_k or "
                      "quantize_qsgd, not sign: use --optimizer ef_sign_sgd\n", err)
        self.assertNotIn("cohort train", err)

    def test_data_that_are_not_there(self):
        err = self.cohort("swamp", "train", "--training-data-dir", "nowhere", status=1).stderr
        self.assertIn("name their folder with --training-data-dir or", err)
        self.assertNotIn("of cohort train", err)

    def test_warnings_name_the_flags_of_the_command(self):
        write_digits(self.folder / "MNIST_data")
        err = self.cohort("mnist", "--local", "--learning_rate", 1e-12, "--batch_size", 20,
                          "--training_epochs", 4, "--validation_size", 100, "--logs_path", "logs").stderr
        self.assertIn("nothing is learned; try a lower --learning_rate", err)
        self.assertNotRegex(err, "--(lr|momentum|warmup-epochs)")


class Memory(ProgramTest):
    CORES = len(os.sched_getaffinity(0))

    def setUp(self):
        super().setUp()
        plain = self.start_with({"OPENBLAS_VERBOSE": 2}, "--version", **self.limit(4096))
        if "Core:" not in plain.communicate()[1]:
            self.skipTest("libtorch does not use OpenBLAS here, or needs much memory by itself")

    def limit(self, mebibytes):
        """For start(): so much address space, besides OpenBLAS's part of it for each core."""
        most = mebibytes + 128 * (self.CORES - 2) << 20
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most))}

    def limited(self, mebibytes, *arguments, status):
        return self.cohort(*arguments, status=status, **self.limit(mebibytes)).stderr

    def test_too_little_for_openblas_is_said_instead_of_tried_for_ever(self):
        self.assertIn("ulimit -v", self.limited(700, "--version", status=1))
        self.assertIn("--workers", self.limited(
            1456, "train", *TINY, "--workers", 16, "--method", "all-reduce",
            status=2))

    def test_a_batch_that_memory_does_not_hold(self):
        batch = ["--model", "resnet8", "--data", "synthetic", "--synthetic-shape", "3x32x32",
                 "--train-size", 6000, "--test-size", 10, "--batch", 6000, "--iterations", 1]
        err = self.limited(1456, "train", *batch, status=1)
        self.assertRegex(err, r"out of memory: .*\d GiB more were needed")
        for text in ("this machine has", "Lower --batch", "--loader-threads"):
            self.assertIn(text, err)
        self.assertNotIn("alloc_cpu", err)

    def test_batches_of_several_workers_that_memory_does_not_hold(self):
        err = self.limited(2400, "train", "--model", "resnet8", "--data", "synthetic",
                           "--synthetic-shape", "3x32x32", "--train-size", 20000, "--test-size", 10,
                           "--batch", 10000, "--iterations", 1, "--workers", 2, "--method",
                           "all-reduce", status=1)
        self.assertRegex(err, r"rank [01] failed at step 0, [^:]*: out of memory: ")
        for text in ("this machine has", "Lower --batch", "--workers"):
            self.assertIn(text, err)
        self.assertNotIn("alloc_cpu", err)
        self.assertNotIn("bad_alloc", err)
        err = self.limited(2400, "bench", "step", "--model", "resnet8", "--data", "synthetic",
                           "--synthetic-shape", "3x32x32", "--train-size", 20000, "--batch", 10000,
                           "--workers", 2, "--method", "all-reduce", status=1)
        self.assertRegex(err, r"rank [01] failed at step 0, [^:]*: out of memory: ")

    def test_a_dialect_names_its_own_flags_when_memory_does_not_do(self):
        err = self.limited(2400, "imagenet", "--dummy", "-a", "vgg16", "-b", 64, "--train-size", 64,
                           "--test-size", 10, status=1)
        self.assertIn("out of memory: ", err)
        self.assertIn("Lower --batch-size", err)
        self.assertIn("(--world-size, times GPUs) or --workers\n", err)  # which load data there
        self.assertNotIn("bad_alloc", err)
        self.assertNotIn("alloc_cpu", err)


class ProgressLine(ProgramTest):
    def lines_at(self, columns, wanted=lambda lines: sum("/s" in line for line in lines) >= 2,
                 **settings):
        """What the program draws on a terminal so wide, redraw by redraw."""
        own, terminal = pty.openpty()
        self.addCleanup(os.close, own)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [program.COHORT, "train", *changed(SLOWER, **{"train_size": 3200, "epochs": 100,
                                                          "record_every": 1, **settings})],
            cwd=self.folder, env=self.environment,
            stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        text, deadline = "", time.monotonic() + 60
        while time.monotonic() < deadline:
            text += os.read(own, 4096).decode()
            lines = [line for line in re.findall(r"\x1b\[\?7l(.*?)\x1b\[K", text) if " left" in line]
            if wanted(lines):
                return lines
        self.fail(f"no progress in 60 s: {text}")

    def test_an_evaluation_shows_how_far_it_is_and_is_part_of_the_time_left(self):
        """Fifty batches of 50 ms each, in a run of which little else is left."""
        lines = self.lines_at(100, lambda lines: sum("evaluating" in line for line in lines) > 8,
                              train_size=32, epochs=2, test_size=100, eval_batch=2, eval_every=1,
                              failpoints="evaluation.batch=sleep:50")
        shown = [re.search(r"evaluating (\d+)%  0:0(\d) left", line) for line in lines]
        shares = [int(match[1]) for match in shown if match]
        self.assertEqual(shares, sorted(shares))
        self.assertLess(shares[0], 50)
        first = next(match for match in shown if match)
        self.assertGreaterEqual(int(first[2]), 3, "the rest of this one and all of the next")

    def test_keeps_rate_and_time_left_on_narrow_terminals(self):
        for columns, also in ((120, "top-1"), (80, "loss"), (45, "samples/s")):
            last = self.lines_at(columns)[-1]
            for text in ("samples/s", " left", also):
                self.assertIn(text, last, columns)
            self.assertLess(len(last), columns)


if __name__ == "__main__":
    program.main()
