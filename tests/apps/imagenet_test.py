"""`cohort imagenet`: the commands of the study, as written there, on a few small pictures."""

import json
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import unittest
import zlib

import program
from ports import free_port
from program import ProgramTest

NUMBER = r" *[0-9]+\.[0-9]+"
LOSS = r"[0-9]\.[0-9]{4}e[+-][0-9]{2}"
SCORES = (rf"Loss {LOSS} \({LOSS}\)\tAcc@1 (?P<top1>{NUMBER}) \({NUMBER}\)"
          rf"\tAcc@5 {NUMBER} \({NUMBER}\)")
EPOCH = re.compile(rf"Epoch: \[(?P<epoch>\d+)\]\[ *(?P<index>\d+)/(?P<total>\d+)\]"
                   rf"\tTime (?P<time>{NUMBER}) \({NUMBER}\)\tData {NUMBER} \({NUMBER}\)\t{SCORES}")
TEST = re.compile(rf"Test: \[ *(?P<index>\d+)/(?P<total>\d+)\]"
                  rf"\tTime {NUMBER} \({NUMBER}\)\t{SCORES}")
FINAL = re.compile(r" \* Acc@1 (?P<top1>\d+\.\d{3}) Acc@5 (?P<top5>\d+\.\d{3})")

TRAIN_PICTURES = 8  # of each of three classes
TEST_PICTURES = 3
STUDY = {  # as written, but for the program's name, the folder, and the network's size
    "single-256": "-a resnet50 --epochs 1 --gpu 0 DIR",
    "single-128": "-a resnet50 --epochs 1 --batch-size 128 --gpu 0 DIR",
    "parallel-256": "-a resnet50 --epochs 1 DIR",
    "parallel-1024": "-a resnet50 --epochs 1 --batch-size 1024 --workers 16 DIR",
    "distributed-1024": "-a resnet50 --epochs 1 --batch-size 1024 --workers 16 --dist-url "
                        "'tcp://127.0.0.1:2345' --dist-backend 'nccl' "
                        "--multiprocessing-distributed --world-size 1 --rank 0 DIR",
    "distributed-256": "-a resnet50 --epochs 1 --batch-size 256 --dist-url 'tcp://127.0.0.1:2345' "
                       "--dist-backend 'nccl' --multiprocessing-distributed --world-size 1 "
                       "--rank 0 DIR",
}
METHOD = {"single": "local", "parallel": "data-parallel", "distributed": "all-reduce"}


def png(side, colour):
    """A noisy square of one colour."""
    rows = b"".join(
        b"\0" + bytes(min(255, max(0, channel + random.randrange(-20, 20)))
                      for _ in range(side) for channel in colour) for _ in range(side))

    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Imagenet(ProgramTest):
    def setUp(self):
        super().setUp()
        # Threads that spin for each other take thirty times as long when the cores are busy.
        self.environment["OMP_WAIT_POLICY"] = "passive"
        random.seed(1)
        colours = {"blue": (30, 30, 220), "green": (30, 220, 30), "red": (220, 30, 30)}
        for split, count in (("train", TRAIN_PICTURES), ("val", TEST_PICTURES)):
            for name, colour in colours.items():
                folder = self.folder / "pictures" / split / name
                folder.mkdir(parents=True)
                for i in range(count):
                    (folder / f"{i}.png").write_bytes(png(40, colour))

    def imagenet(self, *arguments, **options):
        return self.cohort("imagenet", "--image-size", 32, *arguments, **options)

    def small(self, name, *arguments, **options):
        """resnet18, three steps an epoch."""
        return self.imagenet("-a", "resnet18", "-b", 8, "--lr", 0.01, "--name", name, "--gpu", 0,
                             "-p", 2, *arguments, "pictures", **options)

    def lines(self, result, pattern):
        return [match for match in map(pattern.fullmatch, result.stdout.splitlines()) if match]

    def config(self, name):
        return json.loads((self.folder / "runs" / name / "run.json").read_text())["config"]


class Study(Imagenet):
    def run_as_written(self, name, arch):
        words = [{"DIR": "pictures", "resnet50": arch}.get(word, word)
                 for word in shlex.split(STUDY[name])]
        result = self.imagenet(*words, "--name", name)
        lines = result.stdout.splitlines()
        self.assertEqual([line for line in lines if not line.startswith("Use GPU")][0],
                         f"=> creating model '{arch}'")
        epochs = self.lines(result, EPOCH)
        self.assertEqual([(line["epoch"], line["index"]) for line in epochs], [("0", "0")], lines)
        self.assertEqual(len(self.lines(result, TEST)), 1, lines)
        self.assertTrue(FINAL.fullmatch(lines[-1]), lines)
        known = sum(len(self.lines(result, pattern)) for pattern in (EPOCH, TEST, FINAL))
        rest = [line for line in lines if not line.startswith(("Use GPU", "=> creating"))]
        self.assertEqual(known, len(rest), "lines that the example does not print")
        method = METHOD[name.split("-")[0]]
        self.assertEqual(self.config(name)["method"], method)
        samples = sum(record["samples"] for record in self.metrics(
            self.folder / "runs" / name, "step"))
        self.assertEqual(samples, 3 * TRAIN_PICTURES)  # each picture once, whoever took it
        return result

    def test_every_command_runs(self):
        for name in STUDY:
            with self.subTest(name):
                self.run_as_written(name, "resnet18")

    def test_the_largest_runs_with_its_own_network(self):
        self.run_as_written("distributed-256", "resnet50")

    def test_explains_itself_and_the_explanation_trains_the_same(self):
        for name in STUDY:
            words = [{"DIR": "pictures", "resnet50": "resnet18"}.get(word, word)
                     for word in shlex.split(STUDY[name])]
            with self.subTest(name):
                result = self.imagenet(*words, "--explain", "--name", "native-" + name)
                self.assertFalse((self.folder / "runs" / ("native-" + name)).exists())
                native = shlex.split(result.stdout)
                self.assertEqual(native[:2], ["cohort", "train"])
                self.assertEqual(native[native.index("--method") + 1]
                                 if "--method" in native else "local",
                                 METHOD[name.split("-")[0]])
        self.cohort(*native[1:], "--quiet")  # the last one
        self.run_as_written(name, "resnet18")
        self.assertEqual(self.config(name), self.config("native-" + name))
        if "cuda" not in result.stdout:  # where the same bits are not promised
            self.assert_same_weights(self.folder / "runs" / name,
                                     self.folder / "runs" / ("native-" + name))


@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
class Nodes(Imagenet):
    def mpirun(self, *arguments):
        process = subprocess.Popen(
            ["mpirun", "--oversubscribe", "-n", "2", program.COHORT, "imagenet", "--image-size",
             "32", "-a", "resnet18", *map(str, arguments), "pictures"],
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**self.environment, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        out, err = process.communicate(timeout=program.patiently(60))
        if "unknown engine" in err:
            self.skipTest("built without MPI")
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def test_are_processes_and_one_of_them_prints(self):
        result = self.mpirun("-b", 6, "--lr", 0.01, "-p", 1, "--epochs", 1, "--world-size", 2,
                             "--name", "r")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.config("r")["engine"], "mpi")
        self.assertEqual(self.config("r")["workers"], 2)
        self.assertEqual(result.stdout.count("=> creating model 'resnet18'"), 1)
        self.assertEqual([line["index"] for line in self.lines(result, EPOCH)], ["0", "1"])
        self.assertEqual(len(self.lines(result, FINAL)), 1)
        evaluation = self.metrics(self.folder / "runs/r", "evaluation")[-1]
        self.assertEqual(evaluation["samples"], 3 * TEST_PICTURES)

    def test_must_be_asked_for(self):
        result = self.mpirun("--epochs", 1)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("give --world-size 2", result.stderr)
        self.assertEqual(self.mpirun("--world-size", 2, "--explain").stdout.count("\n"), 1)


class NodesWithoutMpi(Imagenet):
    """PyTorch's ways to start several nodes, which find each other over tcp."""
    SMALL = ["-b", 6, "--lr", 0.01, "-p", 1, "--epochs", 1, "--name", "r"]

    def check(self, processes, workers=2):
        results = []
        for process in processes:
            out, err = process.communicate(timeout=program.patiently(120))
            self.assertEqual(process.returncode, 0, f"{out}\n{err}")
            results.append(out)
        self.assertEqual((self.config("r")["engine"], self.config("r")["workers"]), ("tcp", workers))
        self.assertEqual({record["rank"] for record in
                          self.metrics(self.folder / "runs/r", "step")}, set(range(workers)))
        self.assertEqual("".join(results).count("=> creating model 'resnet18'"), 1)
        shutil.rmtree(self.folder / "runs")

    def node(self, rank, *arguments, **variables):
        return self.start_with(variables, "imagenet", "--image-size", 32, "-a", "resnet18",
                               *self.SMALL, *arguments, "pictures")

    def test_meet_where_the_flags_or_the_variables_say(self):
        port = free_port()
        self.check([self.node(rank, "--world-size", 2, "--rank", rank, "--dist-url",
                              f"tcp://127.0.0.1:{port}") for rank in (1, 0)])
        self.check([self.node(rank, "--dist-url", "env://", WORLD_SIZE=2, RANK=rank,
                              MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for rank in (1, 0)])

    def test_each_node_starts_a_worker_a_core(self):
        port = free_port()
        cores = len(os.sched_getaffinity(0))
        nodes = [self.node(rank, "--multiprocessing-distributed", "--world-size", 2, "--rank", rank,
                           "--dist-url", f"tcp://127.0.0.1:{port}", "--dist-backend", "nccl", "-b",
                           3 * cores) for rank in (1, 0)]
        self.check(nodes, workers=2 * cores)

    def test_torchrun_starts_them(self):
        python = "/usr/bin/python3"
        probe = subprocess.run([python, "-c", "import torch.distributed.run"], capture_output=True,
                               check=False) if os.path.exists(python) else None
        if probe is None or probe.returncode != 0:
            self.skipTest("there is no torchrun")
        process = subprocess.Popen(
            [python, "-m", "torch.distributed.run", "--no_python", "--standalone",
             "--nproc_per_node", "2", "-r", "2", "-t", "1", "--log_dir", self.folder / "logs",
             program.COHORT, "imagenet", "--image-size", "32", "-a", "resnet18",
             *map(str, self.SMALL), "pictures"],
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.check([process])


class Habits(Imagenet):
    def test_shortened_and_repeated_flags_as_argparse_reads_them(self):
        common = ["--explain", "pictures"]
        whole = self.imagenet("--weight-decay", 0.5, "--batch-size=4", "--lr", 3, *common).stdout
        short = self.imagenet("--weight", 0.5, "--batch=8", "--lr", 1, "--b", 4, "--lr", 3,
                              *common).stdout
        self.assertEqual(short, whole)
        said = self.imagenet("--dist", "gloo", "pictures", status=2).stderr
        self.assertIn("--dist may be --dist-url or --dist-backend", said)
        for command in (["mnist", "--local", "--train=3", "--training_e", 2],
                        ["choco", "--optim", "sgd", "--optimizer", "dgc", "--optimizer=sgd"],
                        ["dist_train", "--model", "x", "--model", "resnet50", "--use_fake"],
                        ["swamp", "train", "--trainer", 3, "--trainer-num=2"]):
            self.assertIn("cohort train", self.cohort(*command, "--explain").stdout)
        # Ours make none of theirs unclear.
        self.assertIn("--no-accel", self.imagenet("--n", *common).stderr)  # not --name


class Lines(Imagenet):
    def test_print_every_few_steps_and_learn(self):
        result = self.small("r", "--epochs", 12)
        epochs = self.lines(result, EPOCH)
        self.assertEqual([(int(line["epoch"]), int(line["index"]), int(line["total"]))
                          for line in epochs],
                         [(epoch, index, 3) for epoch in range(12) for index in (0, 2)])
        for line in epochs:
            self.assertGreater(float(line["time"]), 0)
        final = self.lines(result, FINAL)
        self.assertEqual(len(final), 12)
        self.assertGreater(max(float(line["top1"]) for line in final), 60)
        self.assertEqual(float(final[-1]["top5"]), 100)  # of three classes

    def test_agree_with_the_records(self):
        result = self.small("r", "--epochs", 1)
        records = self.metrics(self.folder / "runs" / "r", "step")
        losses = {record["step"]: record["loss"] for record in records}
        self.assertEqual([record["steps"] for record in records], [1, 1, 1])
        shown = re.findall(rf"Loss ({LOSS}) \(({LOSS})\)", result.stdout)
        for (value, mean), step in zip(shown, (1, 3)):
            self.assertAlmostEqual(float(value), losses[step], delta=1e-4 * losses[step])
            so_far = [loss for at, loss in losses.items() if at <= step]
            self.assertAlmostEqual(float(mean), sum(so_far) / len(so_far), delta=1e-3)

    def test_go_to_standard_output_and_warnings_to_standard_error(self):
        result = self.small("r", "--epochs", 1, "--seed", 5)
        self.assertIn("You have chosen to seed training.", result.stderr)
        self.assertIn("This will completely disable data parallelism.", result.stderr)
        self.assertNotIn("chosen", result.stdout)
        self.assertEqual(self.config("r")["seed"], 5)


class Resume(Imagenet):
    def test_goes_on_where_the_run_ended(self):
        self.small("whole", "--epochs", 3)
        self.small("r", "--epochs", 1)
        result = self.small("", "--epochs", 3, "--resume", "runs/r")
        self.assertIn("=> loading checkpoint 'runs/r'\n"
                      "=> loaded checkpoint 'runs/r' (epoch 1)\n", result.stdout)
        self.assertEqual({line["epoch"] for line in self.lines(result, EPOCH)}, {"1", "2"})
        self.assert_same_weights(self.folder / "runs/r", self.folder / "runs/whole")

    def test_takes_a_checkpoint_of_the_run_too(self):
        self.small("r", "--epochs", 1)
        folder = self.latest(self.folder / "runs/r")
        result = self.imagenet("--epochs", 2, "--resume", folder, "pictures")
        self.assertIn(f"=> loaded checkpoint '{folder}' (epoch 1)", result.stdout)

    def test_begins_anew_when_nothing_is_there(self):
        result = self.small("r", "--epochs", 1, "--resume", "nowhere/checkpoint.pth.tar")
        self.assertIn("=> creating model 'resnet18'\n"
                      "=> no checkpoint found at 'nowhere/checkpoint.pth.tar'\n", result.stdout)
        self.assertTrue(self.lines(result, FINAL))

    def test_refuses_what_would_make_it_another_run(self):
        self.small("r", "--epochs", 1)
        result = self.imagenet("--lr", 0.5, "--epochs", 2, "--resume", "runs/r", "pictures",
                               status=2)
        self.assertIn("lr", result.stderr)
        (self.folder / "checkpoint.pth.tar").write_bytes(b"PK")
        result = self.imagenet("--resume", "checkpoint.pth.tar", "pictures", status=2)
        self.assertIn("docs/imagenet.md", result.stderr)

    def test_begins_in_the_middle(self):
        result = self.small("r", "--epochs", 33, "--start-epoch", 32)
        self.assertEqual({line["epoch"] for line in self.lines(result, EPOCH)}, {"32"})
        self.assertAlmostEqual(self.metrics(self.folder / "runs/r", "step")[0]["lr"], 0.001)

    def test_goes_on_in_the_epoch_where_one_begun_in_the_middle_stood(self):
        self.small("r", "--epochs", 30, "--start-epoch", 29)
        result = self.imagenet("--epochs", 31, "-p", 1, "--resume", "runs/r", "pictures")
        self.assertIn("=> loaded checkpoint 'runs/r' (epoch 30)", result.stdout)
        self.assertEqual({line["epoch"] for line in self.lines(result, EPOCH)}, {"30"})
        rates = [record["lr"] for record in self.metrics(self.folder / "runs/r", "step")]
        self.assertAlmostEqual(rates[0], 0.01)
        self.assertAlmostEqual(rates[-1], 0.001)


class Evaluate(Imagenet):
    def test_scores_a_run_as_its_training_did(self):
        trained = self.small("r", "--epochs", 2)
        result = self.imagenet("-e", "--resume", "runs/r", "pictures")
        self.assertIn("=> loaded checkpoint 'runs/r' (epoch 2)", result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], trained.stdout.splitlines()[-1])
        self.assertEqual(self.lines(result, EPOCH), [])
        native = self.imagenet("-e", "--resume", "runs/r", "--explain", "pictures").stdout
        self.cohort(*shlex.split(native)[1:])

    def test_scores_a_random_model(self):
        result = self.imagenet("--evaluate", "-a", "resnet18", "pictures")
        self.assertEqual(len(self.lines(result, FINAL)), 1)
        self.assertFalse((self.folder / "runs").exists())

    def test_begins_with_pretrained_weights(self):
        self.small("r", "--epochs", 6)
        best = self.imagenet("-e", "--resume", "runs/r", "pictures").stdout.splitlines()[-1]
        self.imagenet("--pretrained", "-e", "-a", "resnet18", "pictures", status=2)
        self.cohort("export", "runs/r", "--which", "latest", "-o", "pictures/resnet18.safetensors")
        result = self.imagenet("--pretrained", "-e", "-a", "resnet18", "pictures")
        self.assertEqual(result.stdout.splitlines()[0], "=> using pre-trained model 'resnet18'")
        self.assertEqual(result.stdout.splitlines()[-1], best)
        result = self.small("tuned", "--pretrained", "--epochs", 1)
        self.assertEqual(self.config("tuned")["init"],
                         str(self.folder / "pictures/resnet18.safetensors"))


class Usage(Imagenet):
    def refused(self, *arguments, says):
        result = self.imagenet(*arguments, status=2)
        self.assertEqual(result.stdout, "")
        self.assertIn(says, result.stderr)
        self.assertFalse((self.folder / "runs").exists())

    def test_mistakes(self):
        self.refused(says="--dummy")
        self.refused("-a", "resnet5", "pictures", says="resnet50")
        self.refused("--dist-url", "http://a", "pictures", says="tcp://HOST:PORT")
        self.refused("--dist-backend", "smoke", "pictures", says="nccl, gloo, mpi")
        self.refused("--world-size", 2, "pictures", says="mpirun -n 2 cohort imagenet")
        self.refused("--world-size", 2, "--rank", 0, "pictures", says="--dist-url tcp://HOST:PORT")
        self.refused("--world-size", 2, "--rank", 0, "--dist-url", "file:///tmp/x", "pictures",
                     says="tcp://HOST:PORT or env://")
        self.refused("--pretrained", "pictures", says="resnet18.safetensors")
        self.refused("-b", 0, "pictures", says="--batch-size")
        self.refused("--nonsense", "pictures", says="--nonsense")

    def test_a_folder_that_is_not_there(self):
        result = self.imagenet("nowhere", status=1)
        self.assertIn("nowhere", result.stderr)

    def test_every_flag_of_the_example_is_known(self):
        text = self.imagenet("--help").stdout
        for flag in ("-a,--arch", "-j,--workers", "--epochs", "--start-epoch", "-b,--batch-size",
                     "--lr,--learning-rate", "--momentum", "--weight-decay,--wd", "-p,--print-freq",
                     "--resume", "-e,--evaluate", "--pretrained", "--world-size", "--rank",
                     "--dist-url", "--dist-backend", "--seed", "--gpu",
                     "--multiprocessing-distributed", "--no-accel", "--dummy", "--explain"):
            self.assertIn(flag, text)

    def test_dummy_needs_no_pictures(self):
        result = self.imagenet("--dummy", "--train-size", 16, "--test-size", 4, "-b", 8,
                               "--epochs", 1, "--gpu", 0, "-p", 1)
        self.assertEqual([line["index"] for line in self.lines(result, EPOCH)], ["0", "1"])
        self.assertTrue(self.lines(result, FINAL))

    def test_reads_world_size_from_the_environment_when_asked(self):
        self.environment["WORLD_SIZE"] = "3"
        self.environment["RANK"] = "0"
        self.refused("--dist-url", "env://", "pictures", says="MASTER_ADDR")
        self.environment["WORLD_SIZE"] = "1"
        self.imagenet("--dist-url", "env://", "--explain", "pictures")


if __name__ == "__main__":
    program.main()
