#!/usr/bin/python3
"""Time of one all-reduce of PyTorch's Gloo, to compare with `cohort bench all-reduce`.

    pytorch_gloo.py [--workers 2] [--sizes 1KB,4KB,...] [--rounds 15] [--round-seconds 0.02]

Starts its workers itself, as processes of this host, and prints one JSON object a line, as cohort
does: the median and the least time of an operation over the rounds, of rank 0.
"""
import argparse
import json
import os
import socket
import statistics
import time

SIZES = "1KB,4KB,16KB,64KB,256KB,1MB,4MB,16MB,100MB"
UNITS = {"KB": 1e3, "MB": 1e6, "B": 1}


def bytes_of(size):
    for unit, factor in UNITS.items():
        if size.endswith(unit):
            return int(float(size[:-len(unit)]) * factor) // 4 * 4
    return int(size) // 4 * 4


def time_round(values, count, distributed):
    distributed.barrier()
    start = time.perf_counter()
    for _ in range(count):
        distributed.all_reduce(values)
    return (time.perf_counter() - start) / count


def worker(rank, port, options):
    import torch
    import torch.distributed as distributed
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    distributed.init_process_group("gloo", rank=rank, world_size=options.workers)
    for size in options.sizes.split(","):
        values = torch.zeros(bytes_of(size) // 4)
        once = time_round(values, 3, distributed)
        count = torch.tensor([max(1, min(20000, int(options.round_seconds / once)))])
        distributed.broadcast(count, 0)
        seconds = [time_round(values, int(count), distributed) for _ in range(options.rounds)]
        if rank == 0:
            median = statistics.median(seconds)
            print(json.dumps({"bench": "all-reduce", "engine": "pytorch-gloo",
                              "workers": options.workers, "bytes": bytes_of(size),
                              "us": 1e6 * median, "least_us": 1e6 * min(seconds),
                              "gb_per_s": 1e-9 * bytes_of(size) / median}), flush=True)
    distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-seconds", type=float, default=0.02)
    options = parser.parse_args()
    import torch.multiprocessing as multiprocessing
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    multiprocessing.spawn(worker, (port, options), nprocs=options.workers)


if __name__ == "__main__":
    main()
