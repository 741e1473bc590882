#!/usr/bin/env python3
"""The peer to beat on one GPU: a training step of PyTorch in bfloat16, channels last, three ways.

    pytorch_step.py --model resnet50 --batch 256 --mode eager|graph|compile
Prints one line of JSON. The input stays on the GPU; SGD with momentum 0.9 and weight decay 1e-4, as
`cohort bench step` has it.
"""
import argparse
import json
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, inputs, planes, stride, bottleneck):
        super().__init__()
        out = planes * (4 if bottleneck else 1)
        conv = lambda a, b, k, s=1: nn.Conv2d(a, b, k, s, k // 2, bias=False)
        if bottleneck:
            shapes = [(inputs, planes, 1, 1), (planes, planes, 3, stride), (planes, out, 1, 1)]
        else:
            shapes = [(inputs, planes, 3, stride), (planes, out, 3, 1)]
        self.convs = nn.ModuleList(conv(*shape) for shape in shapes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(shape[1]) for shape in shapes)
        self.short = None
        if stride != 1 or inputs != out:
            self.short = nn.Sequential(conv(inputs, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for index, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = norm(conv(y))
            if index + 1 < len(self.convs):
                y = F.relu(y, inplace=True)
        return F.relu(y + (x if self.short is None else self.short(x)), inplace=True)


def residual(stem, planes, blocks, bottleneck, classes):
    layers, inputs = list(stem), stem[0].out_channels
    for stage, count in enumerate(blocks):
        for index in range(count):
            stride = 2 if stage > 0 and index == 0 else 1
            layers.append(Block(inputs, planes << stage, stride, bottleneck))
            inputs = (planes << stage) * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def resnet50():
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    return residual(stem, 64, (3, 4, 6, 3), True, 1000), (3, 224, 224), 1000


def resnet20():
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True)]
    return residual(stem, 16, (3, 3, 3), False, 10), (3, 32, 32), 10


def vgg16():
    layers, inputs = [], 3
    for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if width == 0:
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(True)]
            inputs = width
    head = [nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(25088, 4096), nn.ReLU(True), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 10)]
    return nn.Sequential(*layers, *head), (3, 32, 32), 10


MODELS = {"resnet50": resnet50, "resnet20": resnet20, "vgg16": vgg16}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="resnet50")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--mode", choices=["eager", "graph", "compile"], default="eager")
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    network, shape, classes = MODELS[args.model]()
    network = network.cuda().to(memory_format=torch.channels_last)
    model = torch.compile(network) if args.mode == "compile" else network
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    images = torch.randn(args.batch, *shape, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(classes, (args.batch,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=args.mode != "graph"):
            loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    if args.mode == "graph":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        run = graph.replay
    else:
        run = step
    for _ in range(10):
        run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(args.steps):
        run()
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / args.steps
    print(json.dumps({"peer": "pytorch-" + args.mode, "torch": torch.__version__, "model": args.model,
                      "batch": args.batch, "step_ms": 1e3 * seconds,
                      "samples_per_s": args.batch / seconds}))


if __name__ == "__main__":
    main()
