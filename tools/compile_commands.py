#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Writes compile_commands.json, for clangd and other tools, from what Bazel would run.

  tools/bazel build //... && tools/compile_commands.py [BAZEL_FLAG...]

Build first: "weft/..." are links that a build makes.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Flags that only gcc knows, and outputs that nobody wants.
DROPPED = ("-fno-canonical-system-headers", "-MD")
DROPPED_WITH_VALUE = ("-MF", "-o")


def bazel(*arguments):
    command = [os.path.join(ROOT, "tools", "bazel"), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def compiler_flags(arguments):
    arguments = iter(arguments)
    for argument in arguments:
        if argument in DROPPED_WITH_VALUE:
            next(arguments)
        elif argument not in DROPPED and not argument.startswith("-frandom-seed"):
            yield argument


def main(flags):
    execution_root = bazel("info", "execution_root").strip()
    query = 'mnemonic("CppCompile", //...)'
    actions = json.loads(bazel("aquery", "--output=jsonproto", "--include_artifacts=false", *flags, query))
    entries = []
    for action in actions.get("actions", []):
        arguments = action["arguments"]
        source = arguments[arguments.index("-c") + 1]
        if source.startswith(("external/", "bazel-out/")):
            continue
        entries.append({
            "directory": execution_root,
            "file": os.path.join(ROOT, source),
            "arguments": list(compiler_flags(arguments)),
        })
    path = os.path.join(ROOT, "compile_commands.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(entries, file, indent=1)
    print(f"{path}: {len(entries)} entries")


if __name__ == "__main__":
    main(sys.argv[1:])
