"""What `cohort bench evaluate` is measured against: mnistnet on 10,000 images in a PyTorch loop.

    python3 bench/pytorch_evaluate.py [--batch 64] [--models 16] [--threads 1]

One JSON object a line: the loop as people write it, with a DataLoader; with the tensors ready and
sliced; and the latter with channels innermost, which the kernels like best.
"""

import argparse
import json
import os
import time

os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX" if "avx512f" in open("/proc/cpuinfo").read()
                      else "Haswell")

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MnistNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x.reshape(-1, 800)))), 1)


@torch.no_grad()
def evaluate(model, batches):
    loss = right = 0
    for images, labels in batches:
        output = model(images)
        loss += F.nll_loss(output, labels, reduction="sum").item()
        right += (output.argmax(1) == labels).sum().item()
    return loss, right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--models", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    images, labels = torch.randn(10000, 1, 28, 28), torch.randint(0, 10, (10000,))
    model = MnistNet().eval()

    def sliced(tensor):
        size = arguments.batch
        return [(tensor[i:i + size], labels[i:i + size]) for i in range(0, 10000, size)]

    innermost = torch.channels_last
    for name, net, batches in (
            ("DataLoader", model, DataLoader(TensorDataset(images, labels), arguments.batch)),
            ("sliced tensors", model, sliced(images)),
            ("sliced tensors, channels last", MnistNet().eval().to(memory_format=innermost),
             sliced(images.to(memory_format=innermost)))):
        evaluate(net, batches)
        start = time.perf_counter()
        for _ in range(arguments.models):
            evaluate(net, batches)
        seconds = (time.perf_counter() - start) / arguments.models
        print(json.dumps({"loop": name, "batch": arguments.batch, "threads": arguments.threads,
                          "seconds_per_model": seconds}), flush=True)


if __name__ == "__main__":
    main()
