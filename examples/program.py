# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Runs the examples, as a user does: what their tests share."""

import os
import signal
import re
import subprocess
import threading
import unittest

# More than any step takes; who waits so long has found a bug.
PATIENCE = 60


def path(name):
    """Where the program is that the test has in its data."""
    here = os.path.join(os.environ.get("TEST_SRCDIR", "bazel-bin"), os.environ.get("TEST_WORKSPACE", ""))
    return os.path.join(here, "examples", name)


def _skip_without_poller(errors):
    """A backend that WEFT_POLLER names and this machine has not is no failure of the program."""
    if os.environ.get("WEFT_POLLER"):
        reason = re.search(r"poller '%s' does not work here: .*" % re.escape(os.environ["WEFT_POLLER"]), errors)
        if reason:
            print("not run on this machine: " + reason.group())
            raise unittest.SkipTest(reason.group())


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.lines = out.splitlines()


def run(name, *arguments, stdin="", stdout=subprocess.PIPE, environment=None, closed=()):
    """Runs it to its end; with these variables, too.

    Its input is a text or a file, its output a file if not the result's. Those of `closed`
    (0, 1, 2) it does not have.
    """
    done = subprocess.run(
        [path(name), *arguments],
        **({"input": stdin} if isinstance(stdin, str) else {"stdin": stdin}),
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        preexec_fn=lambda: [os.close(fd) for fd in closed],
        text=True,
        timeout=PATIENCE,
    )
    result = Result(done.returncode, done.stdout or "", done.stderr or "")
    _skip_without_poller(result.err)
    return result


class Program:
    """One that goes on until it is stopped.

    with Program("echo_server", "--port=0") as server:
        line = server.wait_for("listening on ")
        ...
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
    """

    def __init__(self, name, *arguments):
        self.process = subprocess.Popen(
            [path(name), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines, self.errors = [], []
        self._open_outputs = 2
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream, lines):
        for line in stream:
            with self._changed:
                lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._open_outputs -= 1
            self._changed.notify_all()

    def wait_for(self, text, count=1):
        """The count-th line of its output that has `text` in it, as soon as there is one."""

        def found():
            return [line for line in self.lines if text in line][count - 1 : count]

        with self._changed:
            self._changed.wait_for(lambda: found() or self._open_outputs == 0, PATIENCE)
            if not found():
                _skip_without_poller("\n".join(self.errors))
                raise AssertionError("no line with %r in %s; stderr: %s" % (text, self.lines, self.errors))
            return found()[0]

    def address(self):
        """(host, port) of a server's "listening on HOST:PORT"."""
        host, port = self.wait_for("listening on ").split()[-1].rsplit(":", 1)
        return host.strip("[]"), int(port)

    def type(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def close_input(self):
        self.process.stdin.close()

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self):
        """Its exit code, when it has ended and all its output is here."""
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass
