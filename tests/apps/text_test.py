"""Language models, as a user trains, resumes and evaluates them."""

import hashlib
import json
import math
import re

import program
from program import ProgramTest, changed

LSTM = ["--model", "lstm", "--data", "text", "--data-dir", "words", "--rnn-hidden", "8",
        "--rnn-layers", "2", "--bptt", "7", "--batch", "6", "--lr", "0.5", "--clip-norm", "0.25",
        "--epochs", "2", "--threads", "1"]


class TextTest(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "words").mkdir()
        for name, count, seed in (("train", 1200, 1), ("valid", 90, 2), ("test", 203, 3)):
            self.write(name, count, seed)

    def write(self, name, count, seed, prefix="W"):
        """A text that is not random: words follow each other by a rule with exceptions."""
        word, text = seed, ""
        for i in range(1, count + 1):
            word = (word * 5 + (i if i % 7 == 0 else 1)) % 19
            text += f"{prefix}{word}" + ("\n" if i % 11 == 0 else " ")
        (self.folder / "words" / f"{name}.txt").write_text(text)

    def eval_lines(self, *arguments):
        said = self.cohort("eval", *arguments, "--json").stdout
        return [json.loads(line) for line in said.splitlines()]


class Eval(TextTest):
    def test_prints_the_perplexity_that_training_printed(self):
        self.train("r", *LSTM, "--lowercase", "true", "--no-tie-weights")
        told = re.findall(r"test loss (\S+)  perplexity (\S+)", self.last.stderr)
        self.assertEqual(len(told), 2)
        found = re.findall(r"test loss (\S+)  perplexity (\S+) .* words/s",
                           self.cohort("eval", "runs/r").stdout)
        self.assertEqual(found, told)
        for line in self.eval_lines("runs/r"):
            self.assertEqual(line["perplexity"], math.exp(line["loss"]))
            self.assertEqual(line["samples"], 203 + 19 - 1)

    def test_evaluates_on_what_the_run_was_evaluated_on(self):
        run = self.train("r", *LSTM, "--eval-split", "validation", "--quiet")
        recorded = [record["loss"] for record in self.metrics(run, "evaluation")]
        lines = self.eval_lines("runs/r")
        self.assertEqual({line["split"] for line in lines}, {"validation"})
        for line, loss in zip(lines, recorded, strict=True):
            self.assertAlmostEqual(line["loss"], loss, places=5)
        shown = self.cohort("report", "runs/r", "-o", "report.html").stdout
        self.assertIn("Validation loss", shown)
        self.cohort("plot", "runs/r", "--y", "test-loss", "-o", "curves.svg")
        self.assertIn("Validation loss", (self.folder / "curves.svg").read_text())
        samples = {split: self.eval_lines("runs/r", "--split", split)[0]["samples"]
                   for split in ("train", "validation", "test")}
        self.assertEqual(samples["validation"], 90 + 9 - 1)
        self.assertEqual(samples["test"], 203 + 19 - 1)
        self.assertGreater(samples["train"], 1200)

    def test_takes_the_settings_of_an_exported_model(self):
        run = self.train("r", *changed(LSTM, bptt=5), "--lowercase", "true", "--quiet")
        self.cohort("export", "runs/r", "-o", "best.safetensors")
        best = json.loads((run / "summary.json").read_text())["best"]
        (line,) = self.eval_lines("best.safetensors", *LSTM[:10], "--bptt", 5, "--lowercase", "true")
        self.assertAlmostEqual(line["loss"], best["loss"], places=5)

    def test_only_texts_have_a_part_for_validation(self):
        self.train("r", *program.TINY, "--iterations", 2, "--quiet")
        said = self.cohort("eval", "runs/r", "--split", "validation", status=2).stderr
        self.assertIn("only a test set", said)


class Train(TextTest):
    def test_speaks_of_words(self):
        run = self.train("r", *LSTM, "--lowercase", "true")
        said = next(line for line in self.last.stderr.splitlines() if line.startswith("data"))
        self.assertRegex(said, r"text: 1,310 training and 222 test words, \S+ different ones; read "
                               r"in 6 columns, 7 words of each at a time, from .*words$")
        described = json.loads((run / "run.json").read_text())["data"]
        self.assertEqual(described["train_words"], 1310)
        self.assertEqual(described["test_words"], 222)
        # The words as they first appear, and the two that every vocabulary has.
        text = (self.folder / "words/train.txt").read_text().lower().replace("\n", " <eos> ")
        words = list(dict.fromkeys((text + " <eos> <unk>").split()))
        digest = hashlib.sha256("".join(word + "\n" for word in words).encode()).hexdigest()
        self.assertEqual(described["vocabulary"], {"words": len(words), "sha256": digest})
        self.assertNotIn("w1", json.dumps(described))
        self.cohort("report", "runs/r", "-o", "report.html")
        self.assertIn("1310 training words", (self.folder / "report.html").read_text())

    def test_goes_on_with_the_same_words_only(self):
        run = self.train("r", *LSTM, "--quiet")
        self.write("train", 1200, 1, prefix="V")  # as many, and as many different ones
        said = self.cohort("train", "--resume", run, "--epochs", 3, status=2).stderr
        self.assertIn("other vocabulary", said)
        self.write("train", 1200, 1)
        self.cohort("train", "--resume", run, "--epochs", 3, "--quiet")

    def test_goes_on_with_the_same_columns_only(self):
        run = self.train("r", *LSTM, "--method", "all-reduce", "--workers", 2, "--quiet")
        before = (run / "run.json").read_bytes()
        for more in (["--batch", 5], ["--workers", 3], ["--batch", 12]):
            said = self.cohort("train", "--resume", run, "--epochs", 3, *more, status=2).stderr
            self.assertIn("--batch times --workers must stay 12", said)
            self.assertNotIn("--data-dir", said)
        self.assertEqual((run / "run.json").read_bytes(), before)
        self.cohort("train", "--resume", run, "--epochs", 3, "--workers", 3, "--batch", 4, "--quiet")


if __name__ == "__main__":
    program.main()
