#!/usr/bin/env python3
"""What `cohort bench compress` measures, written as one would in PyTorch, on one thread.

    pytorch_compress.py [--size N] [--model-sizes] [--rounds N]
    pytorch_compress.py --beside PATH_TO_COHORT ...   both by turns, and how many times as fast

Prints JSON, one object a line, with the same fields. The operations are those of the CHOCO-SGD
code, with what it sends made as small as its description says: sign with the L1 scale of each
tensor and bits packed over the whole vector, qsgd in bytes, top-k and random-k with values and
indices. Processor time of this thread, as in the program; the median of the rounds.
"""
import argparse
import json
import statistics
import subprocess
import time

import torch


def resnet20_sizes():
    sizes, width = [432, 16, 16], 16
    for stage in (16, 32, 64):
        for _ in range(3):
            sizes += [9 * width * stage, stage, stage, 9 * stage * stage, stage, stage]
            if width != stage:
                sizes += [width * stage, stage, stage]
            width = stage
    return sizes + [640, 10]


class Sign:
    """Scales, then 32 signs in an int32, the rows of a (32, n/32) matrix being bits."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.numel = sum(sizes)
        self.padding = -self.numel % 32
        self.shifts = torch.arange(31, -1, -1, dtype=torch.int32).reshape(32, 1)

    def encode(self, flat):
        scales = torch.stack([part.abs().mean() for part in flat.split(self.sizes)])
        signs = torch.nn.functional.pad(flat, (0, self.padding)) < 0
        words = (signs.reshape(32, -1).to(torch.int32) << self.shifts).sum(0, dtype=torch.int32)
        return scales, words

    def decode(self, message):
        scales, words = message
        bits = ((words >> self.shifts) & 1).reshape(-1)[: self.numel]
        values = 1.0 - 2.0 * bits
        for part, scale in zip(values.split(self.sizes), scales):
            part.mul_(scale)
        return values


class Qsgd:
    def __init__(self, sizes, bits=8):
        self.sizes = sizes
        self.levels = 2**bits - 1

    def encode(self, flat):
        message = []
        for part in flat.split(self.sizes):
            norm = part.norm()
            scaled = part.abs() * (self.levels / norm)
            level = scaled.floor()
            level += (torch.rand_like(scaled) < scaled - level).float()
            message.append((norm, level.to(torch.uint8), part < 0))
        return message

    def decode(self, message):
        parts = []
        for norm, level, negative in message:
            value = level.float() * (norm / self.levels)
            parts.append(torch.where(negative, -value, value))
        return torch.cat(parts)


class Sparse:
    def __init__(self, sizes, ratio=0.99):
        self.sizes = sizes
        self.kept = [max(1, int(size * (1 - ratio))) for size in sizes]

    def encode(self, flat):
        message = []
        for part, kept in zip(flat.split(self.sizes), self.kept):
            indices = self.choose(part, kept)
            message.append((part[indices], indices.to(torch.int32)))
        return message

    def decode(self, message):
        flat = torch.zeros(sum(self.sizes))
        for part, (values, indices) in zip(flat.split(self.sizes), message):
            part[indices.long()] = values
        return flat


class TopK(Sparse):
    def choose(self, part, kept):
        return part.abs().topk(kept, sorted=False).indices


class RandomK(Sparse):
    def choose(self, part, kept):
        return torch.randperm(part.numel())[:kept]


class Half:
    kind = torch.float16

    def __init__(self, sizes):
        pass

    def encode(self, flat):
        return flat.to(self.kind)

    def decode(self, message):
        return message.float()


class Bfloat(Half):
    kind = torch.bfloat16


class NoneAtAll(Half):
    kind = torch.float32

    def encode(self, flat):
        return flat.clone()

    def decode(self, message):
        return message.clone()


COMPRESSORS = {"none": NoneAtAll, "fp16": Half, "bf16": Bfloat, "sign": Sign, "top-k": TopK,
               "random-k": RandomK, "qsgd": Qsgd}


def bytes_of(message):
    if isinstance(message, torch.Tensor):
        return message.numel() * message.element_size()
    return sum(bytes_of(part) for part in message)


def seconds_of(operation, rounds, round_seconds=0.02):
    """The median over the rounds of one operation's time."""
    def once(count):
        start = time.thread_time()
        for _ in range(count):
            operation()
        return time.thread_time() - start

    count = 1
    while once(count) < round_seconds / 2 and count < 1 << 16:
        count *= 2
    return statistics.median(once(count) / count for _ in range(rounds))


def measure(name, vector, sizes, rounds):
    torch.manual_seed(1)
    flat = 0.01 * torch.randn(sum(sizes))
    target = torch.empty_like(flat)
    codec = COMPRESSORS[name](sizes)
    message = codec.encode(flat)
    assert codec.decode(message).numel() == flat.numel()
    gigabytes = 4e-9 * flat.numel()
    copy = seconds_of(lambda: target.copy_(flat), rounds)
    encode = seconds_of(lambda: codec.encode(flat), rounds)
    decode = seconds_of(lambda: codec.decode(message), rounds)
    return {"bench": "compress", "by": "pytorch", "vector": vector, "numel": flat.numel(),
            "tensors": len(sizes), "compressor": name, "bytes": bytes_of(message),
            "copy_gb_per_s": gigabytes / copy, "encode_gb_per_s": gigabytes / encode,
            "decode_gb_per_s": gigabytes / decode, "gb_per_s": gigabytes / (encode + decode),
            "of_copy": copy / (encode + decode)}


def by_cohort(program, name, size, rounds):
    where = ["--size", str(size)] if size else ["--model-sizes"]
    out = subprocess.run([program, "bench", "compress", "--compressors", name, "--rounds",
                          str(rounds)] + where, check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, help="elements of one tensor")
    parser.add_argument("--model-sizes", action="store_true", help="ResNet-20's 65 tensors")
    parser.add_argument("--compressors", default=",".join(COMPRESSORS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--beside", metavar="COHORT", help="the program to compare with")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    vectors = []
    if options.size or not options.model_sizes:
        size = options.size or 16 << 20
        vectors.append(("one tensor", [size], size))
    if options.model_sizes or not options.size:
        vectors.append(("resnet20", resnet20_sizes(), None))
    for vector, sizes, size in vectors:
        for name in options.compressors.split(","):
            theirs = measure(name, vector, sizes, options.rounds)
            if not options.beside:
                print(json.dumps(theirs), flush=True)
                continue
            # PyTorch before and after, so that a busy moment meets both.
            ours = by_cohort(options.beside, name, size, options.rounds)
            again = measure(name, vector, sizes, options.rounds)
            rate = statistics.mean([theirs["gb_per_s"], again["gb_per_s"]])
            print(json.dumps({"bench": "compress", "vector": vector, "compressor": name,
                              "gb_per_s": ours["gb_per_s"], "pytorch_gb_per_s": rate,
                              "times_pytorch": ours["gb_per_s"] / rate,
                              "of_copy": ours["of_copy"], "bytes": ours["bytes"],
                              "pytorch_bytes": theirs["bytes"]}), flush=True)


if __name__ == "__main__":
    main()
