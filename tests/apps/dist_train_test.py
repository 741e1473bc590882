"""`cohort dist_train`: the published commands, with processes on this host and generated pictures."""

import json
import re
import shlex
import unittest

import program
from imagenet_test import png
from ports import free_port
from program import ProgramTest

FLOAT = r"\d+\.\d+(?:e-\d+)?"
BATCH = re.compile(rf"Pass (?P<pass>\d+), batch (?P<batch>\d+), loss (?P<loss>{FLOAT}), "
                   rf"accucacys: \[{FLOAT}, {FLOAT}\]")
TEST = re.compile(rf"Pass: (?P<pass>\d+), Test Accuracy: \[{FLOAT}, {FLOAT}\]")
TOTAL = re.compile(rf"Total examples: (?P<examples>\d+), total time: \d+\.\d{{5}}, "
                   r"\d+\.\d{5} examples/sed")
END = re.compile(rf"total train time:  {FLOAT}")

# Eight batches of 8 for all trainers together.
TINY = ["--model=resnet8", "--data_set", "cifar10", "--use_fake_data", "--image_shape=3,12,12",
        "--train_size", 64, "--test_size", 32, "--device=CPU", "--cpus=1", "--learning_rate=0.05",
        "--like=2018"]  # --image_shape is a later flag


# Without batch normalisation, so that it does not matter how a batch is divided.
PLAIN = ["--model=mlp-100", *TINY[1:]]


class DistTrain(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment = {name: value for name, value in self.environment.items()
                            if "PADDLE" not in name and name not in ("TRAINING_ROLE", "POD_IP",
                                                                     "CPU_NUM")}
        self.environment["OMP_WAIT_POLICY"] = "passive"

    def launch(self, variables, *arguments):
        plain = self.environment
        self.environment = {**plain, **{name: str(value) for name, value in variables.items()}}
        try:
            return self.start("dist_train", *arguments)
        finally:
            self.environment = plain

    def ended(self, process, status=0):
        out, err = process.communicate(timeout=program.patiently(60))
        self.assertEqual(process.returncode, status, f"{process.args}\n{out}\n{err}")
        return out, err

    def lines(self, out, pattern):
        return [match for match in map(pattern.fullmatch, out.splitlines()) if match]

    def losses(self, out):
        return [float(match["loss"]) for match in self.lines(out, BATCH)]

    def assert_learned_as_one(self, losses, flags):
        alone = self.cohort("dist_train", *flags, "--batch_size=8", "--pass_num=2",
                            "--iterations=0").stdout
        self.assertEqual(len(losses), 2 * 8)
        for ours, other in zip(losses, self.losses(alone)):
            self.assertAlmostEqual(ours, other, delta=1e-3)

    def run_directory(self, name):
        return self.folder / "runs" / name


class Local(DistTrain):
    def test_prints_the_programs_lines(self):
        result = self.cohort("dist_train", *TINY, "--batch_size", 8, "--pass_num", 2,
                             "--iterations", 3, "--skip_batch_num=1", "--name", "r")
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0], "----------- Configuration Arguments -----------")
        self.assertIn("batch_size: 8", lines)
        self.assertIn("----------- Configuration envs -----------", lines)
        self.assertEqual([(match["pass"], match["batch"])
                          for match in self.lines(result.stdout, BATCH)],
                         [(str(one), str(batch)) for one in range(2) for batch in range(3)])
        self.assertEqual([match["examples"] for match in self.lines(result.stdout, TOTAL)],
                         ["16", "16"])  # the first batch of a pass is not counted
        self.assertEqual([match["pass"] for match in self.lines(result.stdout, TEST)], ["0", "1"])
        self.assertTrue(END.fullmatch(lines[-1]), lines)
        records = self.metrics(self.run_directory("r"), "step")
        self.assertEqual(len(records), 6)
        for match, record in zip(self.lines(result.stdout, BATCH), records):
            self.assertAlmostEqual(float(match["loss"]), record["loss"], delta=1e-6)

    def test_a_pass_ends_with_the_data_and_tests_can_be_left_out(self):
        result = self.cohort("dist_train", *TINY, "--batch_size", 16, "--pass_num", 2, "--no_test",
                             "--name", "r")
        self.assertEqual(len(self.lines(result.stdout, BATCH)), 2 * 4)  # not 80
        self.assertEqual(self.lines(result.stdout, TEST), [])
        self.assertEqual(self.metrics(self.run_directory("r"), "evaluation"), [])

    def test_gpus_without_effect_are_said(self):
        flags = [*TINY, "--gpus=2", "--explain"]
        self.assertIn("--gpus 2 has no effect with --device CPU",
                      self.cohort("dist_train", *flags).stderr)
        process = self.launch({"CPU_NUM": 2}, *flags)
        out, err = self.ended(process)
        self.assertIn("--workers 2", out)
        self.assertNotIn("no effect", err)

    def test_reads_lists_of_pictures(self):
        for split, count in (("train", 6), ("val", 3)):
            (self.folder / "flowers" / split).mkdir(parents=True)
            lines = []
            for i in range(count):
                (self.folder / "flowers" / split / f"{i}.png").write_bytes(
                    png(20, (30, 220, 30) if i % 3 else (220, 30, 30)))
                lines.append(f"{split}/{i}.png {i % 3}")
            (self.folder / "flowers" / f"{split}_list.txt").write_text("\n".join(lines) + "\n")
        self.cohort("dist_train", "--model=resnet8", "--data_dir=flowers", "--image_shape=3,16,16",
                    "--device=CPU", "--batch_size=3", "--pass_num=1", "--like=2018", "--name", "r")
        document = json.loads((self.run_directory("r") / "run.json").read_text())
        self.assertEqual(document["config"]["data"], "image-list")
        self.assertEqual(document["data"]["classes"], ["0", "1", "2"])
        self.assertEqual(self.metrics(self.run_directory("r"), "evaluation")[-1]["samples"], 3)

    def test_takes_both_spellings_of_truth(self):
        explained = {}
        for name, flags in (("old", ["--async_mode", "--no_split_var"]),
                            ("later", ["--async_mode", "True", "--split_var=false"])):
            process = self.launch({"PADDLE_PSERVER_ENDPOINTS": "127.0.0.1:1", "PADDLE_TRAINERS": 1},
                                  *TINY, "--update_method=pserver", *flags, "--explain")
            explained[name] = self.ended(process)[0]
        self.assertEqual(explained["old"], explained["later"])
        self.assertIn("--server-mode async --sharding whole", explained["old"])

    def test_refuses_with_advice(self):
        for flags, variables, advice in (
                (["--model=DPN68"], {}, "ResNet50"),
                (["--update_method=pserver"], {}, "PADDLE_PSERVER_IPS="),
                (["--update_method=ring"], {}, "local, pserver, nccl2"),
                (["--fp16", "true"], {}, "--fp16 is not here"),
                (["--no_test=maybe"], {}, "takes True or False"),
                (["--update_method=pserver"],
                 {"PADDLE_PSERVER_IPS": "127.0.0.1,127.0.0.1", "PADDLE_TRAINERS": 2},
                 "PADDLE_PSERVER_ENDPOINTS=127.0.0.1:6174,127.0.0.1:6175"),
                (["--batch_sizes=3"], {}, "did you mean --batch_size?")):
            with self.subTest(flags=flags):
                _, err = self.ended(self.launch(variables, *flags), status=2)
                self.assertIn(advice, err)


class Servers(DistTrain):
    def job(self, addresses, trainers, *flags):
        """Starts all servers and trainers; returns what the trainers printed."""
        common = {"PADDLE_TRAINERS": trainers, **addresses[0]}
        # Eight samples a step of all, whatever the number of trainers.
        flags = ["--update_method=pserver", f"--batch_size={8 // trainers}",
                 "--pass_num=2", "--iterations=0", *flags]
        processes = [self.launch({**common, "PADDLE_TRAINING_ROLE": "TRAINER",
                                  "PADDLE_TRAINER_ID": rank}, *flags, "--name", f"t{rank}")
                     for rank in range(trainers)]
        servers = [self.launch({**common, "PADDLE_TRAINING_ROLE": "PSERVER", **own}, *flags)
                   for own in addresses[1]]
        outs = [self.ended(process)[0] for process in processes]
        for server in servers:
            self.ended(server)  # by themselves
        return outs

    def by_address(self, count):
        port = free_port()
        hosts = [f"127.0.0.{i + 1}" for i in range(count)]
        return ({"PADDLE_PSERVER_IPS": ",".join(hosts), "PADDLE_PSERVER_PORT": port},
                [{"PADDLE_CURRENT_IP": host} for host in hosts])

    def by_port(self, count):
        hosts = [f"127.0.0.1:{free_port()}" for _ in range(count)]
        return ({"PADDLE_PSERVER_ENDPOINTS": ",".join(hosts)},
                [{"PADDLE_CURRENT_ENDPOINT": host} for host in hosts])

    def test_four_and_four_as_published(self):
        outs = self.job(self.by_address(4), 4, *TINY)
        for out in outs:
            self.assertEqual(len(self.lines(out, BATCH)), 2 * 8)
            self.assertTrue(END.fullmatch(out.splitlines()[-1]), out)

    def test_two_trainers_learn_as_one_alone(self):
        one, two = (self.losses(out) for out in self.job(self.by_port(2), 2, *PLAIN))
        self.assert_learned_as_one([(a + b) / 2 for a, b in zip(one, two)], PLAIN)

    def test_whole_parameters_at_once_and_merged_batches(self):
        outs = self.job(self.by_port(2), 2, *TINY, "--no_split_var", "--async_mode",
                        "--multi_batch_repeat=2")
        for out in outs:
            self.assertEqual(len(self.lines(out, BATCH)), 2 * 4)

    def test_a_trainer_names_the_servers_that_do_not_come(self):
        hosts = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        trainer = self.launch({"PADDLE_TRAINERS": 1,
                               "PADDLE_PSERVER_ENDPOINTS": ",".join(hosts)},
                              *TINY, "--update_method=pserver", "--peer_timeout=1")
        _, err = self.ended(trainer, status=1)
        for host in hosts:
            self.assertIn(host, err)

    def test_what_a_server_was_told_is_compared_and_checked(self):
        port = free_port()
        job = {"PADDLE_PSERVER_PORT": port, "PADDLE_PSERVER_IPS": "127.0.0.1",
               "PADDLE_TRAINERS": 1, "PADDLE_TRAINER_ID": 0, "POD_IP": "127.0.0.1"}
        flags = [*PLAIN, "--batch_size=8", "--pass_num=1", "--update_method", "pserver"]
        _, err = self.ended(self.launch({**job, "TRAINING_ROLE": "PSERVER"}, *flags,
                                        "--model=resnet5000"), 2)
        self.assertIn("unknown --model 'resnet5000'", err)
        server = self.launch({**job, "TRAINING_ROLE": "PSERVER"}, *flags, "--learning_rate=0.7")
        _, err = self.ended(self.launch({**job, "TRAINING_ROLE": "TRAINER"}, *flags), 2)
        self.assertIn("--learning_rate is 0.05 here and 0.7 where server 0 was started", err)
        self.ended(self.launch({**job, "TRAINING_ROLE": "TRAINER"}, *flags, "--learning_rate=0.7"))
        self.ended(server)

    def test_what_a_server_was_not_told_is_compared_by_its_default(self):
        port = free_port()
        job = {"PADDLE_PSERVER_PORT": port, "PADDLE_PSERVER_IPS": "127.0.0.1",
               "PADDLE_TRAINERS": 1, "PADDLE_TRAINER_ID": 0, "POD_IP": "127.0.0.1"}
        flags = [*PLAIN, "--batch_size=8", "--pass_num=1", "--update_method", "pserver"]
        server = self.launch({**job, "TRAINING_ROLE": "PSERVER"}, *flags)
        mode = "--async_mode (or not): the update is "
        for other, said in (("--async_mode", mode + '"async" here and "sync" where server 0'),
                            ("--no_split_var", 'the sharding is "whole" here and "sliced" where'),
                            ("--batch_size=4", "--batch_size is 4 here and 8 where server 0"),
                            ("--model=resnet8", '--model is "resnet8" here and "mlp-100" where')):
            with self.subTest(other):
                _, err = self.ended(self.launch({**job, "TRAINING_ROLE": "TRAINER"}, *flags, other),
                                    2)
                self.assertIn(said, err)
        self.ended(self.launch({**job, "TRAINING_ROLE": "TRAINER"}, *flags))
        self.ended(server)
        bare = [flag for flag in flags if flag not in ("--batch_size=8", "--learning_rate=0.05")]
        server = self.launch({**job, "TRAINING_ROLE": "PSERVER"}, *bare, "--async_mode")
        _, err = self.ended(self.launch({**job, "TRAINING_ROLE": "TRAINER"}, *flags), 2)
        self.assertIn(mode + '"sync" here and "async" where server 0', err)
        self.assertRegex(err, r"--batch_size is 8 here and \d+ where server 0 was started")
        self.assertRegex(err, r"--learning_rate is 0.05 here and [\d.]+ where server 0 was started")
        server.kill()

    def test_momentum_allows_for_that_of_asynchrony(self):
        port = free_port()
        job = {"PADDLE_PSERVER_PORT": port, "PADDLE_PSERVER_IPS": "127.0.0.1",
               "PADDLE_TRAINERS": 2, "POD_IP": "127.0.0.1"}
        flags = [*PLAIN, "--batch_size=4", "--pass_num=1", "--update_method", "pserver",
                 "--async_mode"]
        server = self.launch({**job, "TRAINING_ROLE": "PSERVER"}, *flags)
        trainers = [self.launch({**job, "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": rank},
                                *flags) for rank in (0, 1)]
        for trainer in trainers:
            _, err = self.ended(trainer)
            self.assertIn("momentum 0.4 instead of 0.9, because updates of 2 workers", err)
        self.ended(server)

    def test_addresses_of_a_network_need_a_secret(self):
        variables = {"PADDLE_TRAINERS": 4, "PADDLE_PSERVER_PORT": 7164,
                     "PADDLE_PSERVER_IPS": "192.168.0.100,192.168.0.101",
                     "PADDLE_CURRENT_IP": "192.168.0.100", "PADDLE_TRAINER_ID": 0}
        for role in ("PSERVER", "TRAINER"):
            process = self.launch({**variables, "PADDLE_TRAINING_ROLE": role}, *TINY,
                                  "--update_method=pserver")
            _, err = self.ended(process, status=2)
            self.assertIn("cohort token", err)


class Collective(DistTrain):
    def test_trainers_learn_as_one_alone(self):
        hosts = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        variables = {"PADDLE_TRAINER_ENDPOINTS": ",".join(hosts), "PADDLE_TRAINERS_NUM": 2}
        flags = [*PLAIN, "--update_method=nccl2", "--batch_size=4", "--pass_num=2",
                 "--iterations=0"]
        other, first = (self.launch({**variables, "PADDLE_TRAINER_ID": rank}, *flags)
                        for rank in (1, 0))
        self.assertEqual(self.losses(self.ended(other)[0]), [])  # the first one speaks for all
        self.assert_learned_as_one(self.losses(self.ended(first)[0]), PLAIN)

    def test_its_native_command_can_be_run(self):
        hosts = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        variables = {"PADDLE_TRAINER_ENDPOINTS": ",".join(hosts), "PADDLE_TRAINERS_NUM": 2}
        flags = [*PLAIN, "--update_method=nccl2", "--batch_size=4", "--pass_num=1", "--name=native"]
        processes = []
        for rank in range(2):
            explained = self.launch({**variables, "PADDLE_TRAINER_ID": rank}, *flags, "--explain")
            words = shlex.split(self.ended(explained)[0])
            begin = words.index("cohort")
            processes.append(self.start_with(dict(word.split("=") for word in words[:begin]),
                                             *words[begin + 1:]))
        self.finish(processes)
        records = self.metrics(self.run_directory("native"), "step")
        self.assertEqual({record["rank"] for record in records}, {0, 1})


if __name__ == "__main__":
    program.main()
