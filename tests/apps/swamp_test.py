"""Swamp: the experiment's five commands, the general ones behind them, and what can go wrong."""

import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import program
from mnist_test import write_digits
from program import ProgramTest, changed

# Quick, and hard enough that a model of the first step is worse than one of the last.
TINY = ["--model", "mlp-100", "--data", "synthetic", "--synthetic-shape", "1x12x12", "--batch",
        "16", "--train-size", "800", "--test-size", "200", "--lr", "0.02", "--epochs", "2",
        "--threads", "1", "--method", "swamp", "--validation-size", "100", "--free-trial-steps",
        "2"]
DUMP = re.compile(r"model_params_trainer_(\d+)_epoch_(\d+)_batch_(\d+)_sec_(\d+)")
PS = re.compile(r"model_params_ps_model_version_(\d+)_sec_(\d+)")
SCORE = re.compile(r"(\d+\.\d+)_(\d+\.\d+)_(\d+\.\d+)\n")


def stems(folder, ending):
    return sorted(path.name[:-len(ending)] for path in folder.glob("*" + ending))


class Swamp(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment["OMP_WAIT_POLICY"] = "passive"

    def summary(self, run):
        return json.loads((run / "summary.json").read_text())


class Experiment(Swamp):
    def setUp(self):
        super().setUp()
        write_digits(self.folder / "digits")

    def test_says_what_it_trains_on(self):
        self.assertIn("2,250 training, 50 validation and 200 test samples",
                      self.train_job("--loss-sample-interval", 50).stderr)

    def train_job(self, *arguments, **options):
        return self.cohort("swamp", "train", "--training-data-dir", "digits", "--validation-size",
                           "50", "--free-trial-steps", 3, "--batch-size", 16, "--threads", 1,
                           *arguments, **options)

    def test_the_five_steps_of_its_guide(self):
        out = self.train_job("--trainer-number", 2, "--pull-probability", 0.5,
                             "--loss-sample-interval", 10, "--job-root-dir", "jobs",
                             "--log-interval", 10).stdout
        job = self.folder / "jobs/swamp_t2_pp0.5"
        for trainer in (0, 1):
            self.assertIn(f"Current trainer id: {trainer}, epoch: 0, batch id: 10\n", out)
            self.assertIn(f"trainer {trainer} done epoch 0\n", out)
            batches = [int(DUMP.fullmatch(stem)[3])
                       for stem in stems(job / f"trainer_{trainer}", ".safetensors")]
            self.assertEqual(sorted(batches), list(range(0, max(batches) + 1, 10)))
            self.assertGreater(len(batches), 3)
        self.assertEqual((job / "meta.info").read_text(), "2_0.5")
        versions = sorted(int(PS.fullmatch(stem)[1]) for stem in stems(job / "ps", ".safetensors"))
        self.assertEqual(versions, list(range(1, self.summary(job)["swamp"]["version"] + 1)))

        out = self.cohort("swamp", "eval", "--job-root-dir", "jobs", "--delete-job-data", "True",
                          "--eval-batch-size", 64, "--eval-max-batch", 200).stdout
        self.assertIn("validating job swamp_t2_pp0.5 ps model version 1 ...\n", out)
        self.assertIn("validating job swamp_t2_pp0.5 trainer 1 epoch 0 batch 10 ...\n", out)
        self.assertRegex(out, r"validation metrics total cost \d+\.\d+ seconds\n$")
        self.assertEqual(list(job.glob("*/model_params*.safetensors")), [])
        self.assertEqual(len(stems(job / "ps", ".eval")), len(versions))
        for path in job.glob("*/*.eval"):
            self.assertTrue(SCORE.fullmatch(path.read_text()), path.read_text())

        self.cohort("swamp", "plot", "--job-root-dir", "jobs")
        picture = next(job.glob("swamp_metrics_t_2_pp_0.5.*"))
        self.assertGreater(picture.stat().st_size, 5000)
        if picture.suffix == ".png":
            self.cohort("swamp", "pdf")
            self.assertTrue((self.folder / "metrics.pdf").read_bytes().startswith(b"%PDF"))

    def test_a_job_is_begun_anew_but_nothing_else_is_deleted(self):
        self.train_job("--loss-sample-interval", 50)
        job = self.folder / "jobs/swamp_t1_pp0"
        (job / "left").write_text("over")
        self.train_job("--loss-sample-interval", 50)
        self.assertFalse((job / "left").exists())
        mine = self.folder / "jobs/mine"
        mine.mkdir()
        (mine / "thesis.txt").write_text("years of work")
        err = self.train_job("--job-name", "mine", status=2).stderr
        self.assertIn("choose another --job-name", err)
        self.assertTrue((mine / "thesis.txt").exists())

    def test_a_job_outlives_a_command_that_fails(self):
        self.train_job("--loss-sample-interval", 50, "--job-name", "swamp_a")
        job = self.folder / "jobs/swamp_a"
        for arguments in (["--training-data-dir", "/nowhere"], ["--momentum", 7],
                          ["--validation-size", -5], ["--validation-size", 0],
                          ["--job-name", "../jobs/swamp_a"]):
            with self.subTest(arguments):
                process = self.start("swamp", "train", "--job-name", "swamp_a", *arguments)
                process.communicate(timeout=program.patiently(60))
                self.assertNotEqual(process.returncode, 0)
                self.assertGreater(process.returncode, 0)
                self.assertTrue((job / "summary.json").exists())

    def test_jobs_of_any_name_are_found_and_a_damaged_one_stops_nobody(self):
        self.train_job("--loss-sample-interval", 50, "--job-name", "mine")
        damaged = self.folder / "jobs/swamp_damaged"
        damaged.mkdir()
        (damaged / "meta.info").write_text("2_0.5")
        (damaged / "run.json").write_text("{")
        for step in ("eval", "plot"):
            err = self.cohort("swamp", step).stderr
            self.assertIn("skipped: jobs/swamp_damaged is no job", err)
        self.assertTrue(list((self.folder / "jobs/mine").glob("swamp_metrics_*")))

    def test_a_score_that_is_none_costs_no_model(self):
        self.train_job("--loss-sample-interval", 50)
        model = sorted((self.folder / "jobs/swamp_t1_pp0/trainer_0").glob("*.safetensors"))[0]
        model.with_suffix(".eval").write_text("")
        self.cohort("swamp", "eval", "--delete-job-data", "true")
        self.assertTrue(SCORE.fullmatch(model.with_suffix(".eval").read_text()))
        self.assertFalse(model.exists())

    def test_the_two_sizes_of_an_evaluation_do_what_they_say(self):
        self.train_job("--loss-sample-interval", 50)
        self.cohort("swamp", "eval", "--eval-batch-size", 8, "--eval-max-batch", 3)
        scores = list((self.folder / "jobs").glob("*/*/*.eval"))
        self.assertTrue(scores)
        for path in scores:
            text = path.read_text().strip()
            self.assertTrue(text.endswith("_24"), text)
            share = float(text.split("_")[1])
            self.assertAlmostEqual(share * 24, round(share * 24), 3)
        # Nobody takes them for scores of the whole set, and those are made when asked for.
        job = self.folder / "jobs/swamp_t1_pp0"
        self.cohort("report", job, "-o", "part.html")
        self.assertIn("as few as 24 samples", (self.folder / "part.html").read_text())
        self.cohort("swamp", "eval", "--eval-batch-size", 8, "--eval-max-batch", 2)
        self.assertTrue(all(path.read_text().strip().endswith("_24") for path in scores))
        found = self.cohort("eval", job).stdout
        self.assertIn(f"{len(scores)} dumped models evaluated", found)
        self.assertTrue(all(SCORE.fullmatch(path.read_text()) for path in scores))
        self.assertIn("0 dumped models evaluated", self.cohort("eval", job).stdout)
        self.cohort("report", job, "-o", "whole.html")
        self.assertNotIn("as few as", (self.folder / "whole.html").read_text())

    def test_a_part_stays_a_part_when_the_models_are_gone(self):
        self.train_job("--loss-sample-interval", 50)
        self.cohort("swamp", "eval", "--eval-batch-size", 8, "--eval-max-batch", 3,
                    "--delete-job-data", "true")
        result = self.cohort("eval", self.folder / "jobs/swamp_t1_pp0")
        self.assertIn("and their models are deleted", result.stderr)
        self.assertIn("on 24 samples", result.stdout)

    def test_a_grid_ends_in_the_pdf(self):
        result = self.cohort("swamp", "batch", "-t", 1, 2, "-p", 0, 1, "--training-data-dir",
                             "digits", "--validation-size", 50, "--loss-sample-interval", 50,
                             "--threads", 1, "--batch-size", 16)
        jobs = self.folder / "jobs"
        self.assertEqual(sorted(path.name for path in jobs.glob("swamp_*")),
                         ["swamp_t1_pp0", "swamp_t1_pp1", "swamp_t2_pp0", "swamp_t2_pp1"])
        self.assertIn("swamp_t2_pp1", (jobs / "report.html").read_text())
        if "no Cairo" in result.stderr:
            return
        for name in ("metrics.pdf", "report.pdf"):
            self.assertTrue((jobs / name).read_bytes().startswith(b"%PDF"), name)

    def test_the_model_and_the_training_losses_are_written_when_asked_for(self):
        self.train_job("--loss-sample-interval", 20, "--save-model", "--loss-file", "losses.svg")
        job = self.folder / "jobs/swamp_t1_pp0"
        self.assertIn("<svg", (job / "losses.svg").read_text())
        saved = program.read_safetensors(job / "best_model.safetensors")
        kept = program.read_safetensors(self.latest(job) / "model.safetensors")
        self.assertEqual(saved, kept)

    def test_is_explained_in_native_words(self):
        words = self.train_job("--trainer-number", 2, "--explain").stdout
        self.assertIn("cohort train --data mnist --method swamp", words)
        self.assertIn("--workers 2", words)

    def test_bad_input_is_refused_with_advice(self):
        for arguments, advice in (
                (["train", "--pull-probability", "1.5"], "from 0 to 1"),
                (["train", "--pull-probability", "nan"], "from 0 to 1"),
                (["train", "--trainer-number", "0"], "at least 1"),
                (["train", "--data-type", "svhn"], "mnist"),
                (["train", "--use-gpu", "perhaps"], "true or false"),
                (["eval", "--job-root-dir", "nothing"], "nothing"),
                (["plot", "--job-root-dir", "digits"], "swamp train"),
                (["pdf", "--job-root-dir", "digits"], "swamp train"),
                (["batch", "-t", "1", "-p", "2"], "from 0 to 1")):
            with self.subTest(arguments):
                err = self.cohort("swamp", *arguments, status=2).stderr
                self.assertIn(advice, err)
        err = self.cohort("swamp", "train", "--training-data-dir", "/nowhere", status=1).stderr
        self.assertIn("data set 'mnist' was not found", err)
        self.assertFalse((self.folder / "jobs").exists())

    def test_jobs_without_scores_or_models_are_told_apart(self):
        self.train_job("--loss-sample-interval", 50)
        self.assertIn("swamp eval", self.cohort("swamp", "plot", status=2).stderr)
        (self.folder / "jobs/swamp_foreign").mkdir()
        err = self.cohort("swamp", "eval").stderr
        self.assertIn("skipped: jobs/swamp_foreign is no job", err)


class Servers(Swamp):
    def run_with(self, name, *arguments):
        self.train(name, *TINY, "--workers", 2, *arguments)
        return self.summary(self.folder / "runs" / name)

    def test_each_of_the_three_trains_and_ends_with_its_best_model(self):
        for server in ("fifo", "latest", "validated"):
            for probability in ("0", "1"):
                with self.subTest(server=server, probability=probability):
                    arguments = TINY if server == "validated" else [
                        word for word in TINY if word not in ("--validation-size", "100")]
                    self.train(server + probability, *arguments, "--workers", 2,
                               "--swamp-server", server, "--pull-probability", probability)
                    run = self.folder / "runs" / (server + probability)
                    summary = self.summary(run)
                    self.assertGreater(summary["swamp"]["accepted"], 0)
                    if probability == "0":
                        self.assertEqual(summary["swamp"]["pulls"], 0)
                    # What the run keeps is the server's model: as good as the server says.
                    records = self.metrics(run, "evaluation")
                    server_loss = [one["loss"] for one in records if one["split"] == "validation"]
                    self.assertAlmostEqual(server_loss[-1], summary["swamp"]["loss"], 5)
                    self.assertLess(server_loss[-1], server_loss[0])
                    self.assertEqual({one["rank"] for one in self.metrics(run, "step")}, {0, 1})

    def test_validated_never_gets_worse_on_its_own_set(self):
        run = self.folder / "runs/a"
        self.train("a", *TINY, "--workers", 2, "--pull-probability", "1")
        losses = [one["loss"] for one in self.metrics(run, "evaluation")
                  if one["split"] == "validation"]
        self.assertGreater(len(losses), 2)
        self.assertEqual(losses, sorted(losses, reverse=True))

    def test_what_is_kept_apart_is_not_counted_as_trained_on(self):
        run = self.train("r", *changed(TINY, epochs=1), "--iterations", "5", "--quiet")
        document = json.loads((run / "run.json").read_text())
        self.assertEqual((document["data"]["train_samples"],
                          document["data"]["validation_samples"]), (700, 100))
        self.cohort("report", run, "-o", "r.html")
        self.assertIn("700 training samples, 100 validation samples, 200 test samples",
                      (self.folder / "r.html").read_text())
        # Older runs counted all, and go on.
        document["data"]["train_samples"] = 800
        del document["data"]["validation_samples"], document["sha256"]
        (run / "run.json").write_text(json.dumps(document))
        self.cohort("train", "--resume", run, "--iterations", 10, "--quiet")
        self.assertEqual(self.summary(run)["steps"], 10)

    def test_workers_pull_with_the_probability_asked_for(self):
        apart = self.run_with("apart", "--pull-probability", "0")
        together = self.run_with("together", "--pull-probability", "1")
        self.assertEqual(apart["swamp"]["pulls"], 0)
        self.assertGreater(together["swamp"]["pulls"], 0)

    def test_flags_that_would_do_nothing_are_refused(self):
        for arguments in (["--pull-probability", "0.7"], ["--swamp-server", "fifo"],
                          ["--method", "swamp", "--check-samples", "5"],
                          ["--method", "swamp", "--partition", "random"],
                          ["--method", "swamp", "--pull-probability", "2"]):
            with self.subTest(arguments):
                self.cohort("train", *arguments, status=2)

    def test_a_run_goes_on_from_its_checkpoint(self):
        self.run_with("a", "--iterations", 40)
        self.cohort("train", "--resume", "runs/a", "--iterations", 80)
        self.assertEqual(self.summary(self.folder / "runs/a")["steps"], 80)


class Dumps(Swamp):
    def test_are_evaluated_once_and_the_evaluation_goes_on_where_it_stopped(self):
        run = self.train("a", *TINY, "--workers", 2, "--dump-every", 10)
        found = sorted((run / "dumps").glob("*/*.safetensors"))
        out = self.cohort("eval", run, "--jobs", 2).stdout
        self.assertIn(f"{len(found)} dumped models evaluated", out)
        for owner in ("worker 0", "worker 1", "server"):
            self.assertIn(owner, out)
        scores = sorted((run / "dumps").glob("*/*.eval"))
        self.assertEqual(len(scores), len(found))
        before = {path: path.read_text() for path in scores}
        for path in scores[:3]:
            path.unlink()
        self.assertIn("3 dumped models evaluated", self.cohort("eval", run).stdout)
        self.assertEqual({path: path.read_text() for path in scores}, before)
        out = self.cohort("eval", run, "--again", "--json").stdout
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(sum("worker" in line or "version" in line for line in lines), len(found))
        self.assertEqual({path: path.read_text() for path in scores}, before)

    def test_of_any_method_can_be_had(self):
        settings = ["--model", "resnet8", "--data", "synthetic", "--synthetic-shape", "3x12x12",
                    "--train-size", "200", "--test-size", "32", "--batch", "20", "--threads", "1",
                    "--epochs", "1", "--dump-every", "2"]
        run = self.train("local", *settings)
        self.assertEqual(len(list((run / "dumps/trainer_0").glob("*.safetensors"))), 5)
        together = self.train("all", *changed(settings, batch=10), "--method", "all-reduce",
                              "--workers", "2")
        self.assertEqual([path.name for path in (together / "dumps").iterdir()], ["trainer_0"])
        self.cohort("eval", together, "--delete-dumps")
        self.assertEqual(list((together / "dumps/trainer_0").glob("*.safetensors")), [])
        self.assertEqual(len(list((together / "dumps/trainer_0").glob("*.eval"))), 5)

    def test_stay_within_their_number(self):
        run = self.train("a", *TINY, "--workers", 1, "--dump-every", 1, "--keep-dumps", 5)
        batches = [DUMP.fullmatch(stem) for stem in stems(run / "dumps/trainer_0", ".safetensors")]
        self.assertLessEqual(len(batches), 6)
        self.assertEqual({int(one[2]) for one in batches}, {0, 1})

    def test_that_are_damaged_or_foreign_are_named_and_counted(self):
        run = self.train("a", *TINY, "--workers", 1, "--dump-every", 20)
        folder = run / "dumps/trainer_0"
        damaged = sorted(folder.glob("*.safetensors"))[0]
        damaged.write_bytes(damaged.read_bytes()[:100])
        (folder / "notes.txt").write_text("mine")
        result = self.cohort("eval", run, status=1)
        self.assertIn(damaged.name, result.stderr)
        self.assertIn("1 file is no dumped model", result.stderr)
        self.assertIn("notes.txt", result.stderr)
        self.assertIn("1 damaged", result.stdout)
        self.assertTrue((folder / "notes.txt").exists())

    def test_of_a_run_in_progress_can_be_evaluated_and_plotted(self):
        job = self.start("train", *changed(TINY, epochs=400), "--workers", 2, "--dump-every", 10,
                         "--name", "a", "--quiet")
        run = self.folder / "runs/a"
        deadline = time.monotonic() + 60
        while len(list(run.glob("dumps/*/*.safetensors"))) < 10:
            self.assertIsNone(job.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.cohort("eval", run)
        self.cohort("plot", run, "-o", "a.svg")
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=program.patiently(60))
        self.assertEqual(job.returncode, 130)

    def test_survive_kill_9_whole(self):
        job = self.start("train", *changed(TINY, epochs=400), "--workers", 2, "--dump-every", 1,
                         "--name", "a", "--quiet")
        run = self.folder / "runs/a"
        deadline = time.monotonic() + 60
        while len(list(run.glob("dumps/*/*.safetensors"))) < 50:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        job.kill()
        job.communicate()
        self.cohort("eval", run)  # ends with 1 if one were damaged

    def test_on_a_full_disk_cost_models_not_the_run(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk],
            capture_output=True).returncode == 0
        if not mounted:
            self.skipTest("may not mount a file system")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        job = self.start("train", *TINY, "--workers", 1, "--dump-every", 1, "--runs-dir", disk,
                         "--name", "a")
        _, err = job.communicate(timeout=program.patiently(60))
        self.assertIn("could not be dumped, training goes on", err)
        self.assertIn(os.strerror(errno.ENOSPC), err)
        shutil.copytree(disk / "a", self.folder / "copy")
        self.cohort("eval", "copy")  # those that are there are whole


class Processes(Swamp):
    def launched(self, *arguments):
        job = self.start("launch", "--servers", 1, "-n", 2, "--state-dir", self.folder / "state",
                         "--", "train", *changed(TINY, epochs=150), "--pull-probability", "0.5",
                         "--name", "job", *arguments)
        self.wait_for_step(job, self.folder / "runs/job", 100)
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text()
        return job, list(map(int, children.split()))

    def ended(self, job, status=0):
        out, err = job.communicate(timeout=program.patiently(60))
        self.assertEqual(job.returncode, status, out + err)
        return err

    def test_a_launched_job_goes_on(self):
        command = ["launch", "--servers", 1, "-n", 2, "--", "train"]
        self.cohort(*command, *TINY, "--iterations", 20, "--name", "again")
        self.cohort(*command, "--resume", "runs/again", "--iterations", 40)
        self.assertEqual(self.summary(self.folder / "runs/again")["steps"], 40)

    def test_the_folders_of_a_job_are_one_run(self):
        job = ["launch", "--servers", 1, "-n", 2, "--", "train", *TINY, "--iterations", 20,
               "--dump-every", 10, "--quiet"]
        self.cohort(*job, "--name", "sw")
        self.cohort(*job)  # whose server nobody named
        folders = sorted(str(run) for run in (self.folder / "runs").iterdir())
        self.assertEqual(len(folders), 6, folders)
        self.assertTrue(any("swamp-server" in folder for folder in folders), folders)
        done = self.cohort("report", *folders, "-o", "r.html")
        self.assertIn("r.html: 2 runs", done.stdout)
        for text in ("-server", "no records yet"):
            self.assertNotIn(text, done.stdout)
            self.assertNotIn("no records yet", done.stderr)
        # The server's models are the job's.
        out = self.cohort("eval", "runs/sw").stdout
        self.assertRegex(out, r"sw-server: \d+ dumped models evaluated")
        self.assertRegex(out, r"\nserver .*\d s\n", "of the whole set")
        self.assertIn("Server's acc. (%)", self.cohort("report", "runs/sw", "-o", "r.html").stdout)
        part = self.cohort("report", "runs/sw-worker1", "-o", "r.html").stderr
        self.assertIn("runs/sw-worker1 is one process's part of the job runs/sw", part)
        # What an earlier job has left is not of this one.
        self.cohort(*job, "--name", "later")
        shutil.rmtree(self.folder / "runs/sw")
        shutil.move(self.folder / "runs/later", self.folder / "runs/sw")
        self.cohort("report", "runs/sw", "-o", "r.html")
        self.assertIn("1 of 2 workers", (self.folder / "r.html").read_text())

    def test_a_server_with_other_settings_refuses_the_worker(self):
        server = self.start("serve-best", *TINY, "--workers", 1, "--listen", "127.0.0.1:0")
        address = server.stderr.readline().split()[-1]
        said = self.cohort("train", *changed(TINY, validation_size=50), "--workers", 1,
                           "--servers", address, "--rank", 0, status=2).stderr
        self.assertIn("--validation-size is 50 here and 100 where the server was started", said)
        self.assertEqual(list((self.folder / "runs").iterdir()), [], "what a refused worker leaves")
        server.send_signal(signal.SIGTERM)
        self.ended(server, status=130)

    def test_compete_over_tcp(self):
        job, _ = self.launched()
        said = self.ended(job)
        self.assertRegex(said, r"server 0: server: [\d,]+ models offered; the best is version \d+")

    def test_a_killed_trainer_does_not_stop_the_other(self):
        job, children = self.launched()
        os.kill(children[2], signal.SIGKILL)
        said = self.ended(job, status=1)
        self.assertIn("worker 1 was ended by signal 9 (Killed); the others go on", said)
        self.assertEqual(self.summary(self.folder / "runs/job")["reason"], "finished")

    def test_a_killed_server_goes_on_from_its_last_accepted_model(self):
        job, children = self.launched("--dump-every", "1000000")
        os.kill(children[0], signal.SIGKILL)
        said = self.ended(job)
        self.assertIn("it is started again (1 of 3)", said)
        records = self.metrics(self.folder / "runs/job-server", "evaluation")
        losses = [one["loss"] for one in records]
        versions = [one["step"] for one in records]
        # No version twice, none worse than the one before: nothing was lost. One may have been
        # kept and not yet recorded when the server was killed.
        self.assertEqual(versions, sorted(set(versions)))
        self.assertLessEqual(versions[-1] - len(versions), 1)
        self.assertEqual(losses, sorted(losses, reverse=True))


if __name__ == "__main__":
    program.main()
