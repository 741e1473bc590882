"""Mistakes of the user: a message that helps, the right exit status, and nothing left behind."""

import json

import program
from imagenet_test import png
from mnist_test import write_digits
from program import TINY, ProgramTest, changed


class BadInput(ProgramTest):
    def refused(self, *arguments, says=(), status=2):
        result = self.cohort(*arguments, status=status)
        for text in says:
            self.assertIn(text, result.stderr, arguments)
        self.assertEqual(result.stdout, "", arguments)
        self.assertNotIn("terminate", result.stderr)
        self.assertFalse((self.folder / "runs").exists(), f"{arguments} left a run behind")

    def test_unknown_names_list_the_known(self):
        for flag, known in (("model", "resnet20"), ("data", "cifar-10"), ("method", "local"),
                            ("optimizer", "adam"), ("schedule", "cosine"),
                            ("augment", "crop-flip"), ("normalize", "half"),
                            ("partition", "dirichlet"), ("memory-format", "channels-last"),
                            ("lr-scaling", "linear")):
            with self.subTest(flag):
                self.refused("train", *changed(TINY, **{flag: "nonsense"}),
                             says=["nonsense", known])

    def test_names_of_runs(self):
        for name in ("a/b", "..", "/tmp/x"):
            self.refused("train", *TINY, "--name", name, says=["--runs-dir"])

    def test_unknown_flags_and_commands(self):
        self.refused("train", "--nonsense", 3, says=["--nonsense", "--help"])
        self.refused("nonsense", says=["nonsense"])
        self.refused(says=["cohort"])

    def test_numbers_that_make_no_sense(self):
        for flag, value in (("batch", "0"), ("batch", "many"), ("batch", "1.5"), ("lr", "-0.1"),
                            ("lr", "nan"), ("momentum", "1"), ("epochs", "99999999999999999999"),
                            ("iterations", "-5"), ("keep", "0"), ("seed", "-1"),
                            ("lr-milestones", "1,x"), ("shuffle", "perhaps"),
                            ("synthetic-shape", "3x32")):
            with self.subTest(flag=flag, value=value):
                self.refused("train", *changed(TINY, **{flag: value}), says=[f"--{flag}"])

    def test_combinations_that_make_no_sense(self):
        self.refused("train", *TINY, "--partition", "sorted", says=["--workers"])
        self.refused("train", *TINY, "--workers", 2, says=["--method all-reduce"])
        self.refused("train", *TINY, "--average-every", 4, says=["--method all-reduce"])
        self.refused("train", *TINY, "--workers", 2, "--method", "all-reduce", "--bucket", "big",
                     says=["--bucket", "auto"])
        self.refused("train", *TINY, "--engine", "pigeons", says=["threads"])
        self.refused("train", *TINY, "--lr-scaling", "linear", says=["--base-batch"])
        self.refused("train", *TINY, "--schedule", "piecewise", "--lr-milestones", "1,2",
                     says=["values"])
        self.refused("train", *changed(TINY, batch=1000), "--drop-last", says=["batch"])
        self.refused("train", *changed(TINY, model="lenet"), says=["lenet"])

    def test_devices(self):
        self.refused("train", *TINY, "--device", "gpu", says=["cpu, cuda or cuda:N"])
        self.refused("train", *TINY, "--precision", "bf16", says=["--precision bf16", "--device cuda"])
        self.refused("bench", "scaling", "--precision", "bf16", says=["--device cuda"])
        self.refused("train", *TINY, "--precision", "fp16", says=["fp32", "tf32", "bf16"])
        result = self.start("train", *changed(TINY, device="cuda", iterations=1, runs_dir="x"))
        _, err = result.communicate()
        if result.returncode == 0:
            self.skipTest("there is a GPU")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--device cpu", err)
        self.assertFalse((self.folder / "x").exists())

    def test_data_that_is_not_there(self):
        reports = json.loads(self.cohort("data", "--json").stdout)
        absent = [report["name"] for report in reports if not report["found"]]
        if not absent:
            self.skipTest("every data set is installed here")
        self.refused("train", "--data", absent[0], "--data-dir", "nowhere", status=1,
                     says=[absent[0], "nowhere", "--data-dir"])

    def test_a_data_folder_that_is_named_is_the_only_one_looked_in(self):
        usual = self.folder / ".cache/cohort"
        usual.mkdir(parents=True)
        write_digits(usual / "mnist")
        for split in ("train", "val"):
            (usual / split / "cat").mkdir(parents=True)
            (usual / split / "cat/1.png").write_bytes(png(8, (200, 30, 30)))
        wrong = "/typo/data"
        for arguments in (["train", "--data", "mnist", "--data-dir", wrong],
                          ["imagenet", "-a", "resnet18", wrong],
                          ["choco", "--data", "mnist", "--arch", "lenet", "--data_dir", wrong],
                          ["swamp", "train", "--training-data-dir", wrong],
                          ["mnist", "--local", "--data_dir", wrong, "--logs_path", "runs"],
                          ["dist_train", f"--data_dir={wrong}", "--model=resnet8"],
                          ["bench", "step", "--data", "mnist", "--data-dir", wrong],
                          ["data", "verify", "mnist", "--data-dir", wrong]):
            with self.subTest(arguments):
                result = self.cohort(*arguments, status=1)
                self.assertIn(f"{wrong} (there is no such folder)", result.stdout + result.stderr)
                self.assertNotIn("(of cohort train)", result.stdout + result.stderr)
                self.assertFalse((self.folder / "runs").exists())
        self.environment["COHORT_DATA_DIR"] = wrong
        self.refused("train", "--data", "mnist", says=["COHORT_DATA_DIR", wrong])

    def test_the_place_of_the_data_is_always_said(self):
        write_digits(self.folder / ".cache/cohort/mnist")
        place = str(self.folder / ".cache/cohort/mnist")
        for arguments in (["train", "--model", "mlp-100", "--data", "mnist", "--iterations", 1],
                          ["mnist", "--local", "--training_epochs", 1, "--validation_size", 100],
                          ["swamp", "train", "--validation-size", 100, "--batch-size", 100]):
            with self.subTest(arguments):
                self.assertIn(f"from {place}", self.cohort(*arguments).stderr)

    def test_init_files(self):
        (self.folder / "text").write_text("not tensors")
        for file in ("absent", "text"):
            self.refused("train", *TINY, "--init", file, says=[file], status=1)

    def test_configuration_files(self):
        for name, content, says in (("broken", "{", "JSON"), ("list", "[1]", "object"),
                                    ("key", '{"modle": "lenet"}', "model"),
                                    ("type", '{"batch": "x"}', "batch"),
                                    ("range", '{"batch": 0}', "batch")):
            with self.subTest(name):
                (self.folder / name).write_text(content)
                self.refused("train", "--config", name, says=[name, says])
        self.refused("train", "--config", "absent", says=["absent"])

    def test_resuming_what_is_no_run(self):
        self.refused("train", "--resume", ".", says=["run.json"])
        self.refused("train", "--resume", "absent", says=["absent"])

    def test_evaluating_and_exporting_what_is_no_run(self):
        self.refused("eval", "absent", says=["absent"])
        self.refused("eval", ".", says=["run directory"])
        self.refused("eval", says=["what"])
        self.refused("export", "absent", says=["absent"])
        (self.folder / "text").write_text("not tensors")
        self.refused("eval", "text", *TINY[:6], says=["text"], status=1)

    def test_more_of_a_batch_than_memory(self):
        self.cohort("train", *changed(TINY, batch=10_000_000, synthetic_shape="3x64x64",
                                      iterations=1), "--quiet")


class ExistingRuns(ProgramTest):
    def test_a_run_is_not_overwritten_nor_changed(self):
        run = self.train("r", *TINY, "--iterations", 2)
        before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        for arguments, says in ((["--name", "r", *TINY], "--resume"),
                                (["--resume", run, "--lr", "1"], "cannot change"),
                                (["--resume", run, "--model", "lenet"], "cannot change"),
                                (["--resume", run, "--name", "s"], "--name"),
                                (["--resume", run, "--config", "x"], "--config"),
                                (["--name", "../r", *TINY], "--runs-dir")):
            self.assertIn(says, self.cohort("train", *arguments, status=2).stderr)
        after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        self.assertEqual(before, after)
        self.assertEqual([path.name for path in (self.folder / "runs").iterdir()], ["r"])

    def test_a_runs_dir_that_cannot_be_made(self):
        (self.folder / "file").write_text("")
        err = self.cohort("train", *TINY, "--runs-dir", "file/runs", status=1).stderr
        self.assertIn("file/runs", err)
        self.assertIn("folder for runs", err)


if __name__ == "__main__":
    program.main()
