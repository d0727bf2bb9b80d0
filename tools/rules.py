#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Checks the rules of this repository that need no compiler.

  tools/rules.py RULE FILE...     one line a finding; exit code 1 if there is one
"""

import os
import re
import sys

LICENCE = ["Copyright 2026 The weft Authors.", "SPDX-License-Identifier: Apache-2.0"]

CPP = (".h", ".cc")

# Files that are chosen whole by the platform, and so may ask for it.
PLATFORM_FILE = re.compile(r"(_linux|_bsd|_posix|_windows|_macos|_poller)\.(h|cc)$|kqueue_on_linux|^bench/peers/")
PLATFORM = re.compile(
    r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(__linux__|__linux|__APPLE__|_WIN32|_WIN64|_MSC_VER|__FreeBSD__|__NetBSD__|__OpenBSD__|__unix__|__CYGWIN__)\b"
)

REGISTRY = re.compile(r"\b(deb|security|ftp|snapshot|registry)\.[a-z]+\.org\b")


def is_cpp(path):
    return path.endswith(CPP)


def is_script(path):
    base = os.path.basename(path)
    return (
        path.endswith((".bzl", ".sh", ".py", ".bazel"))
        or base in ("BUILD", "WORKSPACE", "bazel", "run", ".bazelrc", ".clang-format", ".clang-tidy")
    ) and os.path.getsize(path) > 0


def licence(path, lines):
    """The two licence lines on top."""
    if is_cpp(path):
        mark = "// "
    elif is_script(path):
        mark = "# "
    else:
        return
    top = lines[1:3] if lines[0].startswith("#!") else lines[:2]
    want = [mark + line for line in LICENCE]
    if top != want:
        yield 1, f"put on top: {want[0]} and below it: {want[1]}"


def guards(path, lines):
    """Include guards named for the path."""
    if not path.endswith(".h") or path.startswith("third_party/"):
        return
    guard = "WEFT_" + re.sub(r"\W", "_", path).upper() + "_"
    code = [(n, line) for n, line in enumerate(lines, 1) if line and not line.startswith("//")]
    if len(code) < 3 or code[0][1] != f"#ifndef {guard}" or code[1][1] != f"#define {guard}":
        yield code[0][0] if code else 1, f"begin with: #ifndef {guard}, #define {guard}"
    elif code[-1][1] != f"#endif  // {guard}":
        yield code[-1][0], f"end with: #endif  // {guard}"


def includes(path, lines):
    """Our headers by their full name."""
    if not is_cpp(path):
        return
    for n, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if match and os.path.exists(match[1]) and not match[1].startswith("third_party/"):
            yield n, f'write "weft/{match[1]}": a user may have a {match[1].split("/")[0]}/ too'


def platforms(path, lines):
    """No platform conditions in shared code."""
    if not is_cpp(path) or PLATFORM_FILE.search(path):
        return
    for n, line in enumerate(lines, 1):
        if PLATFORM.search(line):
            yield n, "platform condition in shared code: choose whole files with select(), named *_linux.cc, *_posix.cc, ..."


def names(path, lines):
    """No registry hosts, no paths of one machine."""
    here = os.path.dirname(os.getcwd())
    local = [here + "/"] if here not in ("/", "/tmp") else []
    for n, line in enumerate(lines, 1):
        if REGISTRY.search(line):
            yield n, "names a registry's host: take it from the machine's own configuration"
        if any(path_ in line for path_ in local) or re.search(r"(?<![\w.$}/])/(home/\w|root/)", line):
            yield n, "names a path of one machine: make it relative, or take it from the environment"


RULES = {rule.__name__: rule for rule in (licence, guards, includes, platforms, names)}


def main(arguments):
    rule, count = RULES[arguments[0]], 0
    for path in arguments[1:]:
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().split("\n")
        except UnicodeDecodeError:
            continue
        for line, mend in rule(path, lines[:-1] if lines[-1] == "" else lines):
            print(f"{path}:{line}: {mend}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
