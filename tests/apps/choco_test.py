"""`cohort choco`: the command of the original's guide, and its log."""

import json
import re
import shlex
import shutil

import program
from program import ProgramTest

# As written in the guide, but for program and paths.
GUIDE = """
    --arch resnet20 --optimizer parallel_choco
    --avg_model True --experiment demo --manual_seed 6
    --data cifar10 --pin_memory True
    --batch_size 128 --base_batch_size 64 --num_workers 2
    --num_epochs 300 --partition_data random --reshuffle_per_epoch True --stop_criteria epoch
    --n_mpi_process 16 --n_sub_process 1 --world 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0
    --on_cuda True --use_ipc False
    --lr 0.1 --lr_scaleup True --lr_warmup True --lr_warmup_epochs 5
    --lr_scheduler MultiStepLR --lr_decay 0.1 --lr_milestones 150,225
    --comm_op sign --consensus_stepsize 0.5 --compress_ratio 0.9 --quantize_level 16 --is_biased True
    --weight_decay 1e-4 --use_nesterov True --momentum_factor 0.9
    --hostfile hostfile --graph_topology ring --track_time True --display_tracked_time True
    --python_path conda/bin/python --mpi_path openmpi/
"""
# What makes it affordable: few small pictures, a small network, few workers.
SMALL = {"--arch": "resnet8", "--data": "synthetic", "--synthetic_shape": "3x8x8",
         "--train_size": "256", "--test_size": "64", "--batch_size": "16",
         "--base_batch_size": "64", "--num_workers": "0", "--num_epochs": "2",
         "--n_mpi_process": "4", "--world": "0,0,0,0", "--summary_freq": "2", "--threads": "1",
         "--on_cuda": "False", "--checkpoint": "runs"}
FLAGS = """work_dir remote_exec data data_dir use_lmdb_data partition_data pin_memory arch train_fast
    stop_criteria num_epochs num_iterations avg_model reshuffle_per_epoch batch_size base_batch_size lr
    lr_scaleup lr_scaleup_factor lr_warmup lr_warmup_epochs lr_decay optimizer adam_beta_1 adam_beta_2
    adam_eps graph_topology comm_algo comm_op compress_ratio compress_warmup_values
    compress_warmup_epochs quantize_level is_biased majority_vote consensus_stepsize evaluate_consensus
    mask_momentum clip_grad clip_grad_val local_step turn_on_local_step_from
    local_adam_memory_treatment momentum_factor use_nesterov weight_decay drop_rate
    densenet_growth_rate densenet_bc_mode densenet_compression wideresnet_widen_factor rnn_n_hidden
    rnn_n_layers rnn_bptt_len rnn_clip rnn_use_pretrained_emb rnn_tie_weights rnn_weight_norm
    manual_seed evaluate summary_freq timestamp track_time track_detailed_time display_tracked_time
    resume checkpoint checkpoint_index save_all_models save_some_models user project experiment backend
    use_ipc hostfile mpi_path mpi_env python_path num_workers n_mpi_process n_sub_process world on_cuda
    comm_device local_rank clean_python
    lr_scheduler lr_milestones lr_patience lr_scaleup_init_lr lr_warmup_epochs_upper_bound
    lr_schedule_scheme lr_change_epochs lr_fields lr_scale_indicators lr_scaleup_type lr_onecycle_low
    lr_onecycle_high lr_onecycle_extra_low lr_onecycle_num_epoch lr_gamma lr_mu lr_alpha eval_freq
    evaluate_avg""".split()
TRAIN = re.compile(r"runtime: \{'time': '[^']+', 'rank': (?P<rank>\d+), 'epoch': [0-9.]+, "
                   r"'local_index': (?P<step>\d+), 'n_bits_to_transmit': (?P<sent>[0-9.e-]+), "
                   r"'loss': [0-9.]+, 'top1': [0-9.]+, 'top5': [0-9.]+\} \(\{'split': 'train'\}\)")
BEST = re.compile(r"\tbest performance at local index (?P<step>\d+) \(best epoch [0-9.]+, "
                  r"current epoch (?P<epoch>[0-9.]+)\): [0-9.]+\.")
TIMER = re.compile(r"- load_data +\| +\d+ \| +[0-9.]+s \| +[0-9.]+%")


class Choco(ProgramTest):
    def small(self, **more):
        """The guide's words with those of SMALL, and `more`; None leaves a flag out."""
        words = shlex.split(GUIDE)
        flags = {**dict(zip(words[::2], words[1::2])), **SMALL,
                 **{"--" + name: value for name, value in more.items()}}
        return [word for flag, value in flags.items() if value is not None
                for word in (flag, str(value))]

    def choco(self, *arguments, **options):
        return self.cohort("choco", *arguments, **options)

    def config(self, name):
        return json.loads((self.folder / "runs" / name / "run.json").read_text())["config"]

    def check_run(self, result, engine):
        config = self.config("demo")
        self.assertEqual(config["method"], "choco")
        self.assertEqual(config["engine"], engine)
        self.assertEqual(config["workers"], 4)
        trained = list(TRAIN.finditer(result.stdout))
        self.assertEqual({line["rank"] for line in trained}, {"0", "1", "2", "3"})
        self.assertEqual({line["step"] for line in trained}, {"2", "4", "6", "8"})
        self.assertTrue(all(0 < float(line["sent"]) < 0.02 for line in trained), result.stdout)
        # Every step sends as much as every other.
        self.assertEqual(len({line["sent"] for line in trained}), 1, result.stdout)
        best = list(BEST.finditer(result.stdout))
        self.assertEqual([(line["step"], line["epoch"]) for line in best],
                         [("4", "1.000"), ("8", "2.000")])
        self.assertRegex(result.stdout, TIMER)
        self.assertIn("'type': 'averaged_model_on_full_val'", result.stdout)
        self.assertEqual(result.stdout.count("'type': 'local_model_on_full_val'"), 2 * 4)

    def check_log(self):
        run = self.folder / "runs" / "demo"
        log = json.loads((run / "log-1.json").read_text())
        kinds = {record["measurement"] for record in log}
        self.assertEqual(kinds, {"runtime", "timer", "stat"})
        self.assertEqual({record["rank"] for record in log if "local_index" in record},
                         {0, 1, 2, 3})
        self.assertTrue(all(record["distance"] > 0 for record in log
                            if record["measurement"] == "stat"))
        self.assertEqual(len(BEST.findall((run / "log.txt").read_text())), 2)


class Guide(Choco):
    def test_is_explained_as_written(self):
        result = self.choco(*shlex.split(GUIDE), "--explain")
        self.assertEqual(result.stdout.count("\n"), 1)
        for words in ("cohort launch -n 16 --hosts hostfile -- train", "--method choco",
                      "--compressor sign", "--model resnet20", "--batch 128", "--epochs 300"):
            self.assertIn(words, result.stdout)
        self.assertIn("without effect on this run: --pin_memory", result.stderr)

    def test_trains_with_threads(self):
        result = self.choco(*self.small(hostfile=None))
        self.check_run(result, "threads")
        self.check_log()
        self.assertIn("The scaled lr=0.1", result.stdout)  # 0.1 / 64 * 16 * 4
        self.assertEqual(result.stderr.count("without effect"), 1)

    def test_trains_with_mpirun_on_the_hosts_of_its_file(self):
        if shutil.which("mpirun") is None:
            self.skipTest("no mpirun")
        (self.folder / "hostfile").write_text("localhost slots=4\n")
        process = self.start("choco", *self.small())
        out, err = process.communicate(timeout=program.patiently(60))
        if "built without MPI" in err:
            self.skipTest("built without MPI")
        self.assertEqual(process.returncode, 0, err)
        self.check_run(type("Result", (), {"stdout": out})(), "mpi")
        self.check_log()

    def test_the_same_experiment_again_has_another_folder(self):
        self.choco(*self.small(hostfile=None, num_epochs=1))
        self.choco(*self.small(hostfile=None, num_epochs=1))
        self.assertTrue((self.folder / "runs" / "demo-2" / "log-1.json").exists())


class Methods(Choco):
    def test_every_optimizer_trains(self):
        for optimizer, method, more in (
                ("sgd", "d-psgd", {}), ("parallel_choco_v", "choco", {}), ("dcd_psgd", "dcd", {}),
                ("deep_squeeze", "deep-squeeze", {"consensus_stepsize": 0.1}),
                ("sgd", "all-reduce", {"graph_topology": "complete"}),
                ("ef_sign_sgd", "ef-sign", {"graph_topology": "complete"}),
                ("sign_sgd", "sign-sgd", {"graph_topology": "complete", "lr": 0.001}),
                ("dgc", "dgc", {"graph_topology": "complete", "comm_op": "compress_top_k"})):
            with self.subTest(optimizer=optimizer, method=method):
                self.choco(*self.small(hostfile=None, num_epochs=1, optimizer=optimizer,
                                       experiment=method, lr_scaleup=False, **{"lr": 0.01, **more}))
                self.assertEqual(self.config(method)["method"], method)


class Resume(Choco):
    def test_goes_on_and_evaluates(self):
        self.choco(*self.small(hostfile=None, num_epochs=1))
        result = self.choco(*self.small(hostfile=None, resume="runs/demo"))
        self.assertEqual([line["step"] for line in BEST.finditer(result.stdout)], ["8"])
        run = self.folder / "runs" / "demo"
        self.assertTrue((run / "log-2.json").exists())
        self.assertEqual(len(BEST.findall((run / "log.txt").read_text())), 2)
        average = re.findall(r"'top1': ([0-9.]+), 'top5': [0-9.]+\} \(\{'split': 'test', 'type': "
                             r"'averaged", result.stdout)[-1]
        tested = self.choco(*self.small(hostfile=None, resume="runs/demo", evaluate=True))
        self.assertIn(f"'top1': {average},", tested.stdout)
        refused = self.choco(*self.small(hostfile=None, resume="runs/demo", weight_decay=0.1),
                             status=2)
        self.assertIn("--weight_decay is '0.1' instead of '1e-04'", refused.stderr)


    def test_the_best_is_that_of_the_whole_run(self):
        self.choco(*self.small(hostfile=None, num_epochs=1))
        metrics = self.folder / "runs" / "demo" / "metrics.jsonl"
        # As if all had been right; as long as before, because the run remembers how much there was.
        perfect = re.sub(r'("type":"evaluation".*"top1":)([0-9.e-]+)',
                         lambda found: found[1] + "1.000000000000000000000000"[:len(found[2])]
                         .removesuffix("."), metrics.read_text())
        metrics.write_text(perfect)
        result = self.choco(*self.small(hostfile=None, resume="runs/demo"))
        self.assertRegex(result.stdout, r"best performance at local index 8 \(best epoch 1\.000, "
                                        r"current epoch 2\.000\): 100\.0\.")


class Usage(Choco):
    def refused(self, *arguments, says):
        result = self.choco(*arguments, status=2)
        self.assertEqual(result.stdout, "")
        self.assertIn(says, result.stderr)
        self.assertFalse((self.folder / "data").exists())

    def test_mistakes(self):
        self.refused("--bacth_size", 4, says="did you mean --batch_size?")
        self.refused("--data", "svhn", says="There are:")
        self.refused("--graph_topology", "data_center", says="no such graph")
        self.refused("--lr_decay", "0.1", "--lr_change_epochs", "3", says="--like early")
        self.refused("--clean_python", "True", says="killed")
        self.refused("--pin_memory", says="pin_memory")

    def test_every_flag_of_the_original_is_known(self):
        self.assertEqual(len(FLAGS), 106)
        text = self.choco("--help").stdout
        for flag in FLAGS:
            self.assertRegex(text, rf"--{flag}\b")
            if "_" in flag:
                self.assertIn("--" + flag.replace("_", "-"), text)

    def test_dashes_are_as_good(self):
        result = self.choco("--n-mpi-process", 4, "--graph-topology", "ring", "--explain")
        self.assertIn("--method d-psgd", result.stdout)


if __name__ == "__main__":
    program.main()
