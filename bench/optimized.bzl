# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""A program as -c opt builds it, whatever the rest is built with."""

def _opt_impl(_settings, _attr):
    return {"//command_line_option:compilation_mode": "opt"}

_opt = transition(
    implementation = _opt_impl,
    inputs = [],
    outputs = ["//command_line_option:compilation_mode"],
)

def _optimized_binary_impl(ctx):
    program = ctx.actions.declare_file(ctx.label.name)
    built = ctx.attr.binary[0][DefaultInfo]
    ctx.actions.symlink(output = program, target_file = built.files_to_run.executable, is_executable = True)
    return [DefaultInfo(executable = program, runfiles = built.default_runfiles)]

optimized_binary = rule(
    implementation = _optimized_binary_impl,
    attrs = {
        "binary": attr.label(cfg = _opt, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    executable = True,
)
