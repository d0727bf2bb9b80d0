#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""What measurements beside each other share: processors, servers and their clients, medians."""

import collections
import os
import resource
import subprocess
import sys

SIZES = ((64, "64 B"), (16384, "16 KiB"))
CONNECTIONS = (1, 64, 1000, 10000)

# What is done: a name, the arguments of `load` ("SECONDS" is filled in), and how many
# descriptors that takes.
Work = collections.namedtuple("Work", "name arguments connections")
NETWORK = [Work("accept, request, reset", ("accept", "64", "SECONDS"), 64)]
for size, text in SIZES:
    for count in CONNECTIONS:
        NETWORK.append(
            Work("echo %s, %s" % (text, format(count, ",")), ("echo", str(count), str(size), "SECONDS"), count)
        )
IDLE = Work("idle connections, 10,000", ("idle", "10000"), 10000)
NETWORK.append(IDLE)


def say(text):
    print(text, file=sys.stderr, flush=True)


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def parse(line):
    """A line of names and values, as our programs print them."""
    words = line.split()
    return {key: float(value) for key, value in zip(words[::2], words[1::2])}


def number(value, digits):
    return format(value, ",.%df" % digits)


def syscall_event():
    """The number of the kernel's event "a system call begins", or None and why.

    It lies in a file system that need not be mounted; a mount namespace of one's own
    leaves no trace.
    """
    path = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"
    read = "test -e %s || mount -t tracefs none /sys/kernel/tracing; cat %s" % (path, path)
    for command in (["cat", path], ["unshare", "--mount", "sh", "-c", read]):
        try:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                return int(done.stdout), None
            reason = done.stderr.strip()
        except (OSError, ValueError) as error:
            reason = str(error)
    return None, reason.splitlines()[-1] if reason else "no reason given"


class Machine:
    """What the figures were taken on, and what speaks against them (remarks)."""

    def __init__(self):
        self.remarks = []
        available = sorted(os.sched_getaffinity(0))
        self.server_cpu, self.client_cpu = available[0], available[-1]
        self.processors = len(available)
        if self.server_cpu == self.client_cpu:
            self.remarks.append("server and clients share the only processor: the rates and latencies mean nothing")
        self.event, why_not = syscall_event()
        if self.event is None:
            self.remarks.append("system calls are not counted: %s (it takes root, or CAP_PERFMON)" % why_not)
        self.load = os.getloadavg()[0]
        if self.load > 0.5 * len(available):
            self.remarks.append("the machine was busy before this began (load %.1f): figures are too high" % self.load)
        self.descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors))

    def possible(self, works):
        """Those that there are descriptors for; the others are remarked upon."""
        few = [w for w in works if w.connections + 100 > self.descriptors != resource.RLIM_INFINITY]
        for work in few:
            self.remarks.append("not run: %s: no more than %d descriptors (ulimit -Hn)" % (work.name, self.descriptors))
        return [work for work in works if work not in few]


def pinned(command, cpu, **kwargs):
    """Starts a program on one processor; on any if it is None."""
    if cpu is not None:
        kwargs["preexec_fn"] = lambda: os.sched_setaffinity(0, {cpu})
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)


def figures_of(command, cpu, timeout=300):
    """What a program prints as names and values."""
    process = pinned(command, cpu, stdin=subprocess.DEVNULL)
    try:
        out, error = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise RuntimeError("no end after %d s" % timeout)
    if process.returncode != 0:
        raise RuntimeError(error.strip() or "it ended with %d" % process.returncode)
    return parse(out)


class Server:
    """An echo server for one piece of work. It prints its port and how it was built."""

    def __init__(self, command, cpu):
        self.process = pinned(command, cpu, stdin=subprocess.PIPE)

    def __enter__(self):
        words = self.process.stdout.readline().split()
        if len(words) != 2:
            error = self.process.communicate()[1].strip()
            raise RuntimeError(error or "the server ended with %d" % self.process.returncode)
        self.port, self.build = words
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def serve(command, load, work, seconds, machine):
    """The figures of one piece of NETWORK, done by a fresh server; and how that was built."""
    with Server(command, machine.server_cpu) as server:
        arguments = [server.port, server.process.pid, machine.client_cpu, -1 if machine.event is None else machine.event]
        arguments += [seconds if argument == "SECONDS" else argument for argument in work.arguments]
        figures = figures_of([os.path.abspath(load), *map(str, arguments)], None, 120 + 10 * seconds)
        return figures, server.build
