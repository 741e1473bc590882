"""Every command of README.md and docs/examples.md, made small by the table below, and what it promises."""

import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import unittest

import program
from imagenet_test import png
from mnist_test import write_digits
from ports import free_port
from program import ProgramTest

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
PYTHON = next((python for python in ("/usr/bin/python3", "python3")
               if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0),
              None)
QUICK = "--train-size 6000 --test-size 1000 --epochs 1 --threads 1"  # enough to learn something
FEW = "--iterations 2 --batch 2 --train-size 64 --test-size 20 --threads 1"  # enough to end well
BENCH = "--batch 2 --steps 2 --warmup-steps 1 --threads 1"
DIGITS = "--training-data-dir data/mnist --validation-size 50 --batch-size 32 --threads 1"
PORT, OTHER = free_port(), free_port()
HERE = {"10.0.0.1:7000": f"127.0.0.1:{PORT}"}
LOCAL = {"localhost:2222": f"localhost:{PORT}", "localhost:2223": f"localhost:{OTHER}"}
PICTURES = {"resnet50": "resnet18", " DIR": " pictures"}


def commands(text):
    """What stands after a `$` in the blocks of code, without remarks."""
    for line in text.splitlines():
        if line.startswith("    $ "):
            yield re.sub(r"\s+#.*", "", line[6:]).strip()


# Command -> what is appended, what is replaced, the method that runs it and looks at the result.
TABLE = {
    "cohort train --model lenet --batch 100 --epochs 3 --name first": (QUICK, {}, "interrupted"),
    "cohort train --resume runs/first": ("", {}, "resumed"),
    "cohort train --model lenet --method all-reduce --workers 2 --batch 32 --epochs 1":
        (QUICK + " --name threads", {}, "as_one_worker"),
    "mpirun -n 2 cohort train --model lenet --method all-reduce --batch 32 --epochs 1":
        (QUICK + " --name mpi", {"mpirun": "mpirun --oversubscribe"}, "as_one_worker"),
    "torchrun -r 1 -t 2 --no_python --nproc_per_node 2 cohort train --model lenet --method "
    "all-reduce --batch 32 --epochs 1": (QUICK + " --name torchrun", {}, "as_one_worker"),
    "cohort launch -n 4 --hosts hosts.txt -- train --model resnet20 --data cifar-10 --method "
    "all-reduce": (FEW, {}, "ends"),
    "cohort bench scaling --model resnet20 --workers 1,2 --batch 128":
        (BENCH + " --rounds 1", {}, "compares_scaling"),
    "cohort train --model lenet --method parameter-server --server-mode async --workers 2 "
    "--servers 2": (QUICK, {}, "learns"),
    "cohort launch --servers 2 -n 2 -- train --model lenet --method parameter-server --server-mode "
    "ssp --staleness 3": (QUICK, {}, "learns"),
    "export COHORT_TOKEN=$(cohort token)": ("", {}, "makes_a_token"),
    "cohort serve-parameters --listen 10.0.0.1:7000": ("", HERE, "goes_on"),
    "cohort train --method parameter-server --servers 10.0.0.1:7000 --workers 2 --rank 0":
        (FEW, HERE, "works_for_the_servers"),
    "cohort mnist --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=ps "
    "--task_index=0 &": ("", LOCAL, "goes_on"),
    "cohort mnist --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=worker "
    "--task_index=0": ("--data_dir data/mnist --logs_path logs --validation_size 100 "
                       "--training_epochs 1", LOCAL, "prints_accuracy"),
    "cohort train --model mnistnet --data mnist --method swamp --workers 2 --pull-probability 0.5":
        ("--epochs 2 --threads 1 --validation-size 200", {}, "learns"),
    "cohort swamp train --trainer-number 2 --pull-probability 0.5 --loss-sample-interval 10 "
    "--job-root-dir jobs": (DIGITS, {}, "ends"),
    "cohort swamp eval --job-root-dir jobs --delete-job-data True --eval-batch-size 64 "
    "--eval-max-batch 200": ("--eval-data-dir data/mnist", {}, "ends"),
    "cohort swamp plot --job-root-dir jobs": ("", {}, "makes jobs/**/*.png"),
    "cohort swamp pdf": ("", {}, "makes *.pdf"),
    "cohort swamp batch -t 1 2 4 -p 0 0.5 1":
        (DIGITS + " --eval-data-dir data/mnist --loss-sample-interval 40",
         {"-t 1 2 4 -p 0 0.5 1": "-t 1 2 -p 0.5"}, "makes jobs/report.html"),
    "cohort train --model resnet20 --data cifar-10 --method choco --compressor sign --workers 8":
        (FEW, {}, "ends"),
    "mpirun --oversubscribe -n 8 cohort train --model resnet20 --data cifar-10 --method choco "
    "--compressor top-k": (FEW, {}, "ends_if_mpi_is_there"),
    "cohort topology torus -n 16 --png torus.png": ("", {}, "makes torus.png"),
    "cohort tune --topology ring -n 8 --compressor sign": ("", {}, "ends"),
    "cohort choco --arch resnet20 --optimizer parallel_choco --comm_op sign --graph_topology ring "
    "--n_mpi_process 8": ("--train_size 64 --test_size 20 --batch_size 2 --stop_criteria iteration "
                          "--num_iterations 16 --threads 1 --data_dir data", {}, "ends"),
    "cohort train --model lenet --method all-reduce --workers 2 --dump-every 100 --name b":
        (QUICK, {"--dump-every 100": "--dump-every 20"}, "makes runs/b/dumps/**/*.safetensors"),
    "cohort eval runs/b": ("--threads 1", {}, "ends"),
    "cohort train --model lenet --method diloco --average-every 50 --workers 2 --epochs 1":
        (QUICK, {"--average-every 50": "--average-every 10"}, "learns"),
    "cohort report runs/first runs/b -o report.pdf -o report.html": ("", {}, "makes report.*"),
    "cohort plot runs/first runs/b --out curves.svg": ("", {}, "makes curves.svg"),
    "cohort imagenet -a resnet50 --epochs 1 --gpu 0 DIR":
        ("--image-size 32 --batch-size 8", PICTURES, "ends"),
    "cohort imagenet -a resnet50 --multiprocessing-distributed --world-size 1 --rank 0 DIR":
        ("--image-size 32 --batch-size 8 --epochs 1", PICTURES, "ends"),
    "cat small.json": ("", {}, "writes_the_file"),
    "cohort train --config small.json --lr 0.002 --name adamw":
        ("--train-size 6000 --test-size 1000 --threads 1", {}, "learns"),
    "cohort eval runs/first": ("--threads 1", {}, "evaluates_all"),
    "cohort export runs/first -o lenet.safetensors": ("", {}, "exports"),
    "python3 docs/load_in_pytorch.py lenet.safetensors":
        ("", {"python3 docs": f"{PYTHON} SOURCE/docs"}, "runs_if_torch_is_there"),
    "cohort train --model lenet --init lenet.safetensors --lr 0.005": (QUICK, {}, "learns"),
    "cohort bench step --model resnet20 --batch 64 --threads 1": (BENCH, {}, "times_a_step"),
}


class Readme(ProgramTest):
    def setUp(self):
        super().setUp()
        self.documents = "".join((program.SOURCE / name).read_text()
                                 for name in ("README.md", "docs/examples.md"))
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "cohort").symlink_to(program.COHORT)
        self.environment.update({"PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                                 "COHORT_DATA_DIR": str(self.folder / "data"),
                                 "OMP_WAIT_POLICY": "passive", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        self.prepare_data()
        (self.folder / "hosts.txt").write_text("localhost slots=4\n")

    def prepare_data(self):
        data = self.folder / "data"
        data.mkdir()
        write_digits(data / "mnist")
        if not FASHION.exists():
            shutil.copytree(data / "mnist", data / "fashion-mnist")
        (data / "cifar-10-batches-bin").mkdir()
        for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
            rows = b"".join(struct.pack("B", i % 10) + bytes([20 * (i % 10)]) * 3072
                            for i in range(20))
            (data / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(rows)
        for split in ("train", "val"):
            for name, colour in (("blue", (30, 30, 220)), ("red", (220, 30, 30))):
                folder = self.folder / "pictures" / split / name
                folder.mkdir(parents=True)
                for i in range(8):
                    (folder / f"{i}.png").write_bytes(png(40, colour))

    def test_every_command_does_what_is_promised(self):
        found = list(commands(self.documents))
        self.assertEqual([each for each in found if each not in TABLE], [], "not in the table")
        self.assertEqual([each for each in TABLE if each not in found], [], "in no document")
        for text in found:
            more, changes, check = TABLE[text]
            for old, new in changes.items():
                self.assertIn(old, text)
                text = text.replace(old, new)
            check, *pattern = check.split()
            with self.subTest(text):
                getattr(self, check)(f"{text} {more}".rstrip(), *pattern)

    # The ways to run a command, and what is to be seen then.

    def begin(self, text):
        process = subprocess.Popen(shlex.split(text.rstrip("& ")), cwd=self.folder, text=True,
                                   env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ends(self, text, status=0):
        process = self.begin(text)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, status, f"{text}\n{out}\n{err}")
        return out + err

    def ends_if_mpi_is_there(self, text):
        if shutil.which("mpirun"):
            self.ends(text)

    def newest_summary(self):
        """Of the newest run that has evaluated its model; not every worker of a job does."""
        paths = sorted(self.folder.glob("runs/**/summary.json"), key=lambda path: path.stat().st_mtime)
        summaries = [json.loads(path.read_text()) for path in paths]
        return [summary for summary in summaries if summary["last"]][-1]

    def learns(self, text, at_least=0.3):
        said = self.ends(text)
        self.assertRegex(said, r"epoch 1 .*top-1|top-1")
        summary = self.newest_summary()
        self.assertGreater(summary["last"]["top1"], at_least, said)
        self.assertEqual(summary["warning"], "")
        return summary["last"]["top1"]

    def interrupted(self, text):
        """By Ctrl-C: ends with status 130 and says how to go on."""
        process = self.begin(text.replace("--epochs 1", "") + " --checkpoint-every 10")
        self.wait_for_step(process, self.folder / "runs/first", 50)
        process.send_signal(2)
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("everything is saved. Go on with:\n  cohort train --resume runs/first", err)

    def resumed(self, text):
        self.assertIn("resuming from runs/first/checkpoints/step-", self.ends(text))
        summary = self.newest_summary()
        self.assertEqual(summary["reason"], "finished")
        self.assertGreater(summary["last"]["top1"], 0.5)

    def as_one_worker(self, text):
        """The result is that of one worker with a batch of 64."""
        if not hasattr(self, "alone"):
            self.alone = self.learns(f"cohort train --model lenet --batch 64 {QUICK} --name alone")
        starter = text.split()[0]
        if starter != "cohort" and not shutil.which(starter):
            return
        self.assertAlmostEqual(self.learns(text), self.alone, delta=0.02)

    def compares_scaling(self, text):
        self.assertIn("all-reduce", self.ends(text))

    def makes_a_token(self, _):
        token = self.cohort("token").stdout.strip()
        self.assertGreaterEqual(len(token), 32)
        self.environment["COHORT_TOKEN"] = token

    def goes_on(self, text):
        """Until those who need it are done."""
        self.server = self.begin(text)

    def works_for_the_servers(self, text):
        other = self.begin(text.replace("--rank 0", "--rank 1"))
        self.ends(text)
        for process in (other, self.server):
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, f"{out}\n{err}")

    def prints_accuracy(self, text):
        said = self.ends(text)
        self.assertRegex(said, "Test-Accuracy: [0-9.]+")
        self.server.communicate(timeout=120)

    def makes(self, text, pattern):
        for old in self.folder.glob(pattern):
            old.unlink()
        self.ends(text)
        self.assertNotEqual(list(self.folder.glob(pattern)), [], pattern)

    def writes_the_file(self, _):
        shown = re.search(r"\$ cat small.json\n(    \{\n.*?\n    \}\n)", self.documents,
                          re.DOTALL)[1]
        (self.folder / "small.json").write_text(shown)

    def evaluates_all(self, text):
        lines = [line for line in self.ends(text).splitlines() if "/checkpoints/step-" in line]
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            self.assertRegex(line, r"test loss \d\.\d{4}  top-1 \d+\.\d\d%  top-5 .* samples/s")
        self.assertRegex(lines[-1], r"latest\)")

    def exports(self, text):
        self.assertRegex(self.ends(text),
                         r"lenet.safetensors: 10 tensors of .*/runs/first/checkpoints/step-")

    def runs_if_torch_is_there(self, text):
        if PYTHON:
            self.ends(text.replace("SOURCE", str(program.SOURCE)))

    def times_a_step(self, text):
        (line,) = [json.loads(line) for line in self.ends(text).splitlines() if line[:1] == "{"]
        self.assertEqual((line["bench"], line["batch"], line["accumulate"]), ("step", 2, 1))
        self.assertGreater(line["compute_ms"], 0)


EPOCH = re.compile(r"epoch (\d+)  test loss ([\d.]+)  top-1 ([\d.]+)%")


@unittest.skipUnless(FASHION.exists(), "Fashion-MNIST is not installed")
class AsWritten(ProgramTest):
    """In full, on the real data: the figures that README.md shows."""

    def setUp(self):
        super().setUp()
        self.readme = (program.SOURCE / "README.md").read_text()
        self.environment["OMP_WAIT_POLICY"] = "passive"

    def run_as_written(self, text):
        self.assertIn(f"    $ {text}\n", self.readme)
        return self.cohort(*shlex.split(text)[1:]).stderr

    def test_the_first_run_learns_as_shown(self):
        shown = {int(epoch): (float(loss), float(top1))
                 for epoch, loss, top1 in EPOCH.findall(self.readme)}
        self.assertEqual(set(shown), {1, 2, 3})
        said = self.run_as_written("cohort train --model lenet --batch 100 --epochs 3 --name first")
        self.assertIn("lenet: 61,706 parameters", said)
        found = EPOCH.findall(said)
        self.assertEqual(len(found), 3, said)
        for epoch, loss, top1 in found:
            self.assertAlmostEqual(float(loss), shown[int(epoch)][0], delta=0.03, msg=said)
            self.assertAlmostEqual(float(top1), shown[int(epoch)][1], delta=1.5, msg=said)

    def test_asynchronous_servers_learn(self):
        said = self.run_as_written("cohort train --model lenet --method parameter-server "
                                   "--server-mode async --workers 2 --servers 2")
        self.assertIn("momentum 0.4 instead of 0.9", said)
        accuracy = re.search(r"test accuracy  ([\d.]+)%", said)
        self.assertGreater(float(accuracy[1]), 86, said)
        self.assertNotIn("nothing is learned", said)


if __name__ == "__main__":
    program.main()
