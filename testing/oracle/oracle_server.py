#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Answers questions about programs, one after the other, for oracle.cc.

A question on standard input is one line, `generate SEED SIZE`, or `trace BYTES` and that many bytes
of a program. The answer on standard output is a line `ok BYTES BYTES` or `invalid BYTES 0`, then the
program, then its trace.
"""

import gc
import os
import sys

if sys.version_info < (3, 11):
    sys.exit("python3 is older than 3.11")

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import asyncio_oracle  # noqa: E402

# What a program leaves behind (suspended coroutines, an open loop) must not be collected while
# another runs, since its `finally` blocks would run then, and with the other's loop. So nothing is,
# and the process that piles it up is a child that is replaced from time to time.
PROGRAMS_PER_CHILD = 50


# The children share one standard input, so none may read ahead.


def read_line():
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            break
        line += byte
    return line


def read_exactly(count):
    data = b""
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more:
            break
        data += more
    return data


def answer(question, keep):
    kind, *arguments = question.split()
    if kind == b"generate":
        text = asyncio_oracle.generate(int(arguments[0]), int(arguments[1]))
    else:
        text = read_exactly(int(arguments[0])).decode()
    out = []
    player = asyncio_oracle.Player(asyncio_oracle.parse(text), out)
    keep.append(player)
    player.run()
    sys.stderr.close()  # The one that run() put in place.
    sys.stderr = sys.__stderr__
    trace = "" if player.invalid else "\n".join(out) + "\n"
    word = "invalid" if player.invalid else "ok"
    program, trace = text.encode(), trace.encode()
    sys.stdout.buffer.write(f"{word} {len(program)} {len(trace)}\n".encode() + program + trace)
    sys.stdout.buffer.flush()


def serve():
    """Answers some questions, in a child. Exit code 0: there may be more of them."""
    gc.disable()
    keep = []
    for _ in range(PROGRAMS_PER_CHILD):
        question = read_line()
        if not question:
            os._exit(1)
        answer(question, keep)
    os._exit(0)


def main():
    while True:
        child = os.fork()
        if child == 0:
            serve()
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            sys.exit(f"oracle_server: a child ended by signal {os.WTERMSIG(status)}")
        if status != 0:
            break


if __name__ == "__main__":
    main()
