#!/usr/bin/env python3
"""Words a second of train_word2vec, and of the same updates in NumPy as Chainer's example made them on the CPU.

  OMP_NUM_THREADS=1 word2vec_peer.py build/bin/train_word2vec text.txt

An update takes a batch of words and looks up the vectors of the words around them, one offset after the
other. Each is asked for the word, by negative sampling or along a path of a Huffman tree. All gradients
are cleared before, and Adam changes all parameters behind. Chainer's losses went through the samples
one by one ("samples"); "batch" treats all samples of an offset together, as well as NumPy can.
"""
import argparse
import collections
import heapq
import os
import re
import subprocess
import tempfile
import time

import numpy

UNITS, WINDOW, NEGATIVE = 100, 5, 20


def read_words(path):
    """Ids of the words and of the ends of lines, and how often each id occurs; about as the example cuts them."""
    lines = [re.findall(r"[\w']+|[^\w\s]", line.lower()) for line in open(path, encoding="utf-8")]
    words = [word for line in lines if line for word in line + ["<eos>"]]
    counts = collections.Counter(words).most_common(10000)
    ids = {word: i for i, (word, _) in enumerate(counts)}
    return numpy.array([ids.get(word, 0) for word in words], "i"), numpy.array([n for _, n in counts], "d")


class Parameter:
    """An array, its gradient, and Adam's moments."""

    def __init__(self, data):
        self.data = data.astype("f")
        self.grad, self.m, self.v = (numpy.zeros_like(self.data) for _ in range(3))

    def update(self, rate):
        self.m += 0.1 * (self.grad - self.m)
        self.v += 0.001 * (self.grad * self.grad - self.v)
        self.data -= rate * self.m / (numpy.sqrt(self.v) + 1e-8)


class NegativeSampling:
    """Rows: the word's own, and drawn ones; signs +1, and -1."""

    def __init__(self, counts):
        self.W = Parameter(numpy.zeros((len(counts), UNITS)))
        self.signs = numpy.array([1] + [-1] * NEGATIVE, "f")
        # Walker's tables: an id from one number, without a search.
        weights = counts ** 0.75 * len(counts) / (counts ** 0.75).sum()
        self.threshold, self.values = numpy.ones(len(counts)), numpy.arange(len(counts))
        small = [i for i, w in enumerate(weights) if w < 1]
        large = [i for i, w in enumerate(weights) if w >= 1]
        while small and large:
            i, j = small.pop(), large[-1]
            self.threshold[i], self.values[i] = weights[i], j
            weights[j] -= 1 - weights[i]
            if weights[j] < 1:
                small.append(large.pop())

    def rows_of(self, t):
        drawn = numpy.random.uniform(0, len(self.threshold), (len(t), NEGATIVE))
        ids = drawn.astype("i")
        drawn = numpy.where(drawn - ids < self.threshold[ids], ids, self.values[ids])
        return [(rows, self.signs) for rows in numpy.concatenate([t[:, None], drawn], 1)]


class HuffmanPaths:
    """Rows: the nodes on a word's path; signs: its turns."""

    def __init__(self, counts):
        heap = [(n, i, i) for i, n in enumerate(counts)]
        heapq.heapify(heap)
        paths, codes, nodes = ([[] for _ in counts] for _ in range(3))
        members = {i: [i] for i in range(len(counts))}
        for node in range(len(counts) - 1):
            (n, _, a), (m, _, b) = heapq.heappop(heap), heapq.heappop(heap)
            for side, sign in ((a, 1), (b, -1)):
                for word in members[side]:
                    paths[word].append(node)
                    codes[word].append(sign)
            key = len(counts) + node
            members[key] = members.pop(a) + members.pop(b)
            heapq.heappush(heap, (n + m, key, key))
        self.W = Parameter(numpy.random.uniform(-1, 1, (len(counts) - 1, UNITS)))
        self.paths = [(numpy.array(p), numpy.array(c, "f")) for p, c in zip(paths, codes)]

    def rows_of(self, t):
        return [self.paths[word] for word in t]


def by_samples(loss, x, t):
    """The loss and the gradient of x; adds to that of W."""
    terms, total, gx = loss.rows_of(t), 0, numpy.empty_like(x)
    for of_sample, (rows, signs) in zip(x, terms):
        total += numpy.logaddexp(0, -signs * loss.W.data[rows].dot(of_sample)).sum()
    for i, (rows, signs) in enumerate(terms):
        w = loss.W.data[rows]
        g = -signs / (1 + numpy.exp(signs * w.dot(x[i])))
        gx[i] = g.dot(w)
        for row, factor in zip(rows, g):
            loss.W.grad[row] += factor * x[i]
    return total, gx


def by_batch(loss, x, t):
    terms = loss.rows_of(t)
    rows, signs = numpy.concatenate([r for r, _ in terms]), numpy.concatenate([s for _, s in terms])
    sample = numpy.repeat(numpy.arange(len(t)), [len(r) for r, _ in terms])
    w, of_sample = loss.W.data[rows], x[sample]
    products = signs * numpy.einsum("ij,ij->i", w, of_sample)
    g = (-signs / (1 + numpy.exp(products)))[:, None]
    numpy.add.at(loss.W.grad, rows, g * of_sample)
    gx = numpy.zeros_like(x)
    numpy.add.at(gx, sample, g * w)
    return numpy.logaddexp(0, -products).sum(), gx


def numpy_rate(words, counts, loss, evaluate, batch, seconds):
    """Words a second of updates for so many seconds, and the loss of a guess in the last of them."""
    embed = Parameter(numpy.random.normal(0, 1, (len(counts), UNITS)))
    parameters, done, start, guess = [embed, loss.W], 0, time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        middles = numpy.random.randint(WINDOW, len(words) - WINDOW, batch)
        width = numpy.random.randint(1, WINDOW + 1)
        for parameter in parameters:
            parameter.grad.fill(0)
        for offset in [*range(-width, 0), *range(1, width + 1)]:
            around = words[middles + offset]
            guess, gx = evaluate(loss, embed.data[around], words[middles])
            numpy.add.at(embed.grad, around, gx)
        done += 1
        rate = 0.001 * numpy.sqrt(1 - 0.999 ** done) / (1 - 0.9 ** done)
        for parameter in parameters:
            parameter.update(rate)
    return done * batch / (time.perf_counter() - start), guess / batch


def catena_rate(program, text, out_type, batch):
    """Of an epoch."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--data", text, "--out-type", out_type, "--batchsize", str(batch), "--epoch", "1",
                   "--device", "cpu:0", "--out", folder, "--overwrite"]
        output = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return float(re.findall(r"^1 .* ([\d.]+)\s*$", output.stdout, re.M)[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="train_word2vec")
    parser.add_argument("text", help="a file")
    parser.add_argument("--batchsize", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10, help="of NumPy for each figure")
    options = parser.parse_args()
    words, counts = read_words(options.text)
    print(f"{len(words)} words, {len(counts)} in the vocabulary, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}")
    print("| loss | catena, words/s | NumPy by samples | ratio | NumPy by batch | ratio |\n|---|---|---|---|---|---|")
    for out_type, make in (("ns", NegativeSampling), ("hsm", HuffmanPaths)):
        ours = catena_rate(options.program, options.text, out_type, options.batchsize)
        cells = [f"{ours:,.0f}"]
        for evaluate in (by_samples, by_batch):
            rate, _ = numpy_rate(words, counts, make(counts), evaluate, options.batchsize, options.seconds)
            cells += [f"{rate:,.0f}", f"{ours / rate:.1f}"]
        print(f"| {out_type} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
