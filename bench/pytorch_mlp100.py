#!/usr/bin/python3
"""The loop of `cohort train --model mlp-100 --data mnist --batch 100 --train-size 55000` in PyTorch.

Needs Debian's python3-torch: the very libtorch that Cohort links. The images are in memory as
floats, batches are gathered by index, so what is measured is the step. Evaluation is left out.
    pytorch_mlp100.py [--steps 5500] [--threads 1]
Prints one line: peer=pytorch steps_per_s=… threads=…
"""
import argparse
import os
import sys
import time

if "OPENBLAS_CORETYPE" not in os.environ and "avx512f" in open("/proc/cpuinfo").read():
    os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"  # as the program sets it for itself
    os.execv(sys.executable, [sys.executable, *sys.argv])

import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=5500)
parser.add_argument("--threads", type=int, default=1)
arguments = parser.parse_args()
torch.set_num_threads(arguments.threads)
torch.manual_seed(1)

samples, batch = 55000, 100
images, labels = torch.rand(samples, 784), torch.randint(0, 10, (samples,))
model = torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.Sigmoid(), torch.nn.Linear(100, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def run(steps):
    done = 0
    while done < steps:
        order = torch.randperm(samples)
        for begin in range(0, samples, batch):
            chosen = order[begin:begin + batch]
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(images[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            loss.item()
            done += 1
            if done == steps:
                return


run(300)
start = time.perf_counter()
run(arguments.steps)
print(f"peer=pytorch steps_per_s={arguments.steps / (time.perf_counter() - start):.0f} "
      f"threads={arguments.threads}")
