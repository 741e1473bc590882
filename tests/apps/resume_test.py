"""Runs that end early, by whatever cause, and go on as if nothing had happened."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess

import program
from program import SLOWER, TINY, ProgramTest, changed

STEPS = 80


class GoingOn(ProgramTest):
    def test_goes_on_by_epochs_after_a_run_by_iterations(self):
        run = self.train("r", *TINY, "--iterations", 3, "--quiet")
        self.cohort("train", "--resume", run, "--epochs", 2, "--quiet")
        self.assertEqual(self.metrics(run, "step")[-1]["step"], 16)

    def test_refuses_fewer_steps_than_it_has(self):
        run = self.train("r", *TINY, "--iterations", 3, "--quiet")
        before = (run / "run.json").read_bytes()
        err = self.cohort("train", "--resume", run, "--iterations", 2, status=2).stderr
        self.assertIn("at step 3 already", err)
        self.assertEqual((run / "run.json").read_bytes(), before)

    def test_refuses_other_data_than_it_was_trained_on(self):
        run = self.train("r", *TINY, "--iterations", 3, "--quiet")
        document = json.loads((run / "run.json").read_text())
        document["data"]["train_samples"] += 1
        del document["sha256"]
        (run / "run.json").write_text(json.dumps(document))
        err = self.cohort("train", "--resume", run, "--iterations", 9, status=2).stderr
        self.assertIn("train_samples", err)

    def test_refuses_settings_that_a_bad_disk_has_changed(self):
        run = self.train("r", *TINY, "--iterations", 3, "--quiet")
        description = (run / "run.json").read_text()
        (run / "run.json").write_text(description.replace('"lr": 0.02', '"lr": 0.42'))
        err = self.cohort("train", "--resume", run, "--iterations", 5, status=2).stderr
        self.assertIn("run.json is damaged: its checksum does not fit", err)
        document = json.loads(description)
        del document["sha256"]  # as older runs are
        (run / "run.json").write_text(json.dumps(document))
        self.cohort("train", "--resume", run, "--iterations", 5, "--quiet")
        self.assertIn("sha256", json.loads((run / "run.json").read_text()))

    def test_keeps_the_first_command_and_lists_the_later_ones(self):
        run = self.train("r", *TINY, "--iterations", 3, "--quiet")
        first = json.loads((run / "run.json").read_text())["command"]
        self.cohort("train", "--resume", run, "--iterations", 5, "--quiet")
        document = json.loads((run / "run.json").read_text())
        self.assertEqual(document["command"], first)
        self.assertIn("--resume", document["resumed_by"][0])

    def test_warns_of_a_damaged_checkpoint_even_when_quiet(self):
        run = self.train("r", *TINY, "--iterations", 6, "--checkpoint-every", 3, "--quiet")
        with open(self.latest(run) / "model.safetensors", "ab") as file:
            file.write(b"x")
        err = self.cohort("train", "--resume", run, "--iterations", 9, "--quiet").stderr
        self.assertIn("warning", err)


class Interrupted(ProgramTest):
    def setUp(self):
        super().setUp()
        self.whole = self.train("whole", *SLOWER, "--iterations", STEPS, "--quiet")

    def start_run(self, name, *arguments):
        return self.start("train", "--name", name, *SLOWER, "--iterations", STEPS,
                          "--record-every", 1, *arguments)

    def assert_records_complete(self, run):
        """Every step is covered exactly once, whatever happened in between."""
        covered = 0
        for record in self.metrics(run, "step"):
            covered += record["steps"]
            self.assertEqual(record["step"], covered)
        self.assertEqual(covered, STEPS)

    def test_ctrl_c_saves_and_says_how_to_go_on(self):
        for number, stop in enumerate((signal.SIGINT, signal.SIGTERM)):
            run = self.folder / f"runs/r{number}"
            process = self.start_run(run.name)
            self.wait_for_step(process, run, 2 + 10 * number)
            process.send_signal(stop)
            _, err = process.communicate(timeout=program.patiently(60))
            self.assertEqual(process.returncode, 130, err)
            self.assertIn(f"--resume runs/{run.name}", err)
            err = self.cohort("train", "--resume", run).stderr
            self.assertIn("resuming from", err)
            self.assert_same_weights(run, self.whole)
            self.assert_records_complete(run)
            events = [record["event"] for record in self.metrics(run, "event")]
            self.assertIn("resume", events)

    def test_kill_9_loses_no_more_than_since_the_last_checkpoint(self):
        seed = random.randrange(1 << 30)
        moments = random.Random(seed)
        for attempt in range(3):
            with self.subTest(seed=seed, attempt=attempt):
                run = self.folder / f"runs/k{attempt}"
                process = self.start_run(run.name, "--checkpoint-every", 5, "--quiet")
                self.wait_for_step(process, run, moments.randrange(1, STEPS - 30))
                try:
                    process.wait(timeout=moments.random() * 0.1)
                except subprocess.TimeoutExpired:
                    pass
                process.kill()
                process.communicate()
                self.assertEqual(process.returncode, -signal.SIGKILL)
                self.cohort("train", "--resume", run)
                self.assert_same_weights(run, self.whole)
                self.assert_records_complete(run)

    def test_a_folder_removed_during_the_run_is_made_again(self):
        run = self.folder / "runs" / "a"
        process = self.start("train", "--name", "a", *changed(SLOWER, iterations=60,
                                                              checkpoint_every=20,
                                                              record_every=1), "--failpoints",
                             "training.compute.rank0=sleep:10")
        self.wait_for_step(process, run, 30)
        shutil.rmtree(run)
        [said] = self.finish([process])
        self.assertIn(f"runs/a was removed or moved during the run; it is made again", said)
        self.assertEqual({path.name for path in run.iterdir()},
                         {".lock", "checkpoints", "metrics.jsonl", "run.json", "summary.json"})
        steps = [record["step"] for record in self.metrics(run, "step")]
        self.assertEqual(steps, list(range(1, 61)))
        self.cohort("train", "--resume", "runs/a", "--iterations", 62)

    def test_only_one_process_may_train_a_run(self):
        run = self.folder / "runs/r"
        process = self.start_run("r")
        self.wait_for_step(process, run, 1)
        process.send_signal(signal.SIGSTOP)  # it must not end before the other one asks
        err = self.cohort("train", "--resume", run, status=2).stderr
        self.assertIn("in use", err)
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=program.patiently(60))
        self.assertEqual(process.returncode, 130)


class Damaged(ProgramTest):
    def damage(self, path):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x10
        path.write_bytes(content)

    def test_falls_back_to_the_checkpoint_before(self):
        whole = self.train("whole", *TINY, "--iterations", 20)
        run = self.train("r", *TINY, "--iterations", 15, "--checkpoint-every", 5, "--keep", 3)
        newest = self.latest(run)
        self.damage(newest / "model.safetensors")
        err = self.cohort("train", "--resume", run, "--iterations", 20).stderr
        self.assertIn(newest.name, err)
        self.assertIn("step 10", err)
        self.assert_same_weights(run, whole)

    def test_says_so_when_no_checkpoint_is_sound(self):
        run = self.train("r", *TINY, "--iterations", 4, "--checkpoint-every", 2)
        for checkpoint in (run / "checkpoints").glob("step-*"):
            self.damage(checkpoint / "state.safetensors")
        err = self.cohort("train", "--resume", run, "--iterations", 6, status=1).stderr
        self.assertIn("state.safetensors", err)

    def test_starts_anew_when_nothing_was_saved_yet(self):
        whole = self.train("whole", *TINY, "--iterations", 4)
        run = self.train("r", *TINY, "--iterations", 4)
        shutil.rmtree(run / "checkpoints")
        err = self.cohort("train", "--resume", run).stderr
        self.assertIn("step 0", err)
        self.assert_same_weights(run, whole)

    def test_a_longer_plan_continues_a_finished_run(self):
        whole = self.train("whole", *TINY, "--iterations", 12)
        run = self.train("r", *TINY, "--iterations", 7)
        self.cohort("train", "--resume", run, "--iterations", 12)
        self.assert_same_weights(run, whole)

    def test_resuming_needs_the_initial_weights_no_more(self):
        self.train("a", *TINY, "--iterations", 2)
        self.cohort("export", "runs/a", "-o", "start")
        run = self.train("b", *TINY, "--iterations", 2, "--init", "start")
        os.remove(self.folder / "start")
        self.cohort("train", "--resume", run, "--iterations", 4)

    def test_divergence_names_the_step_and_keeps_what_was_saved(self):
        run = self.train("r", *changed(TINY, lr="1e6", weight_decay=1000, iterations=400,
                                       checkpoint_every=1), status=1)
        self.assertRegex(self.last.stderr, r"at step \d+")
        for advice in ("--lr", "--warmup-epochs", "--clip-norm"):
            self.assertIn(advice, self.last.stderr)
        self.cohort("export", run, "--which", "latest", "-o", "m")
        self.assertFalse((run / "summary.json").exists())


def small_files_only():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))  # a checkpoint needs more


class Crashed(ProgramTest):
    def test_a_crash_in_the_middle_of_saving_loses_one_checkpoint(self):
        err = self.cohort("train", "--failpoints", "x=crash", "--model", "none", status=2).stderr
        if "unknown model" not in err:
            self.skipTest("built without failpoints")
        arguments = changed(TINY, iterations=12, checkpoint_every=3, eval_every=0)
        whole = self.train("whole", *arguments)
        for place, time in (("file.write", 7), ("file.rename", 7), ("checkpoint.point", 3),
                            ("append.write", 7)):
            with self.subTest(place):
                run = self.train(place, *arguments, "--failpoints", f"{place}=crash@{time}",
                                 status=-signal.SIGKILL)
                self.cohort("train", "--resume", run)
                self.assert_same_weights(run, whole)


class FullDisk(ProgramTest):
    def test_a_checkpoint_that_cannot_be_written_costs_no_other(self):
        run = self.train("r", *TINY, "--iterations", 4)
        err = self.cohort("train", "--resume", run, "--iterations", 12, "--checkpoint-every", 2,
                          status=1, preexec_fn=small_files_only).stderr
        self.assertIn("warning: no checkpoint at step 6", err)
        self.assertIn(os.strerror(errno.EFBIG), err)
        self.assertIn("safetensors", err)
        self.assertEqual(self.latest(run).name, "step-000000004")
        self.assertEqual(len(list((run / "checkpoints").iterdir())), 3)  # nothing half-written
        whole = self.train("whole", *TINY, "--iterations", 12)
        self.cohort("train", "--resume", run, "--iterations", 12)
        self.assert_same_weights(run, whole)

    def test_a_full_file_system_is_named(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=384k", "tmpfs", disk],
            capture_output=True).returncode == 0
        if not mounted:
            self.skipTest("may not mount a file system")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        err = self.cohort("train", *TINY, "--runs-dir", disk, "--name", "r", "--iterations", 40,
                          "--checkpoint-every", 4, "--keep", 9, status=1).stderr
        self.assertIn(os.strerror(errno.ENOSPC), err)
        self.cohort("export", disk / "r", "--which", "latest", "-o", "m")
        lines = self.metrics(disk / "r", "step")
        self.assertTrue(lines)


if __name__ == "__main__":
    program.main()
