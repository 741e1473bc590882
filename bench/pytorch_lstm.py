"""Words a second of the language model in PyTorch, to set beside `cohort train --model lstm`.

    pytorch_lstm.py [--words 33278] [--hidden 650] [--layers 3] [--batch 20] [--bptt 35] [--steps 10]

The same network and step as Cohort's (tied weights, dropout 0.4, clipping to 0.25, plain SGD) on
random words: forward, backward and update, without reading data.
"""
import argparse
import time

import torch
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, words, hidden, layers):
        super().__init__()
        self.drop = nn.Dropout(0.4)
        self.encoder = nn.Embedding(words, hidden)
        self.rnn = nn.LSTM(hidden, hidden, layers, dropout=0.4 if layers > 1 else 0)
        self.decoder = nn.Linear(hidden, words)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, words, state):
        output, state = self.rnn(self.drop(self.encoder(words)), state)
        return self.decoder(self.drop(output)).flatten(0, 1), state


def main():
    parser = argparse.ArgumentParser()
    for name, value in dict(words=33278, hidden=650, layers=3, batch=20, bptt=35, steps=10,
                            threads=0).items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    model = LanguageModel(options.words, options.hidden, options.layers).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    text = torch.randint(options.words, (options.steps + 2, options.bptt + 1, options.batch),
                         device=options.device)
    state, start = None, 0.0
    for step, piece in enumerate(text):
        if step == 2:  # the first ones warm up
            if options.device != "cpu":
                torch.cuda.synchronize()
            start = time.monotonic()
        logits, state = model(piece[:-1], state)
        state = tuple(each.detach() for each in state)
        loss = nn.functional.cross_entropy(logits, piece[1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
    if options.device != "cpu":
        torch.cuda.synchronize()
    seconds = time.monotonic() - start
    print(f"{options.steps * options.bptt * options.batch / seconds:.0f} words/s, "
          f"{seconds / options.steps:.3f} s a step")


if __name__ == "__main__":
    main()
