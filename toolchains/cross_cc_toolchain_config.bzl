# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""What Bazel must know of a compiler that builds for another system: MinGW-w64, zig."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load(
    "@bazel_tools//tools/cpp:cc_toolchain_config_lib.bzl",
    "artifact_name_pattern",
    "feature",
    "flag_group",
    "flag_set",
    "tool_path",
    "with_feature_set",
)

_COMPILE = [
    ACTION_NAMES.assemble,
    ACTION_NAMES.preprocess_assemble,
    ACTION_NAMES.c_compile,
    ACTION_NAMES.cpp_compile,
    ACTION_NAMES.cpp_header_parsing,
    ACTION_NAMES.linkstamp_compile,
]

_LINK = [
    ACTION_NAMES.cpp_link_executable,
    ACTION_NAMES.cpp_link_dynamic_library,
    ACTION_NAMES.cpp_link_nodeps_dynamic_library,
]

# The same file gives the same object, wherever and whenever it is compiled.
_REPRODUCIBLE = [
    "-no-canonical-prefixes",
    "-Wno-builtin-macro-redefined",
    "-D__DATE__=\"redacted\"",
    "-D__TIMESTAMP__=\"redacted\"",
    "-D__TIME__=\"redacted\"",
]

def _set(actions, flags, mode = None):
    if not flags:
        return []
    return [flag_set(
        actions = actions,
        flag_groups = [flag_group(flags = flags)],
        with_features = [with_feature_set(features = [mode])] if mode else [],
    )]

def _impl(ctx):
    modes = [feature(name = mode) for mode in ["dbg", "fastbuild", "opt"]]
    flags = [
        feature(
            name = "default_compile_flags",
            enabled = True,
            flag_sets = _set(_COMPILE, ctx.attr.compile_flags) +
                        _set(_COMPILE, ["-O2", "-DNDEBUG", "-g0"], "opt") +
                        _set(_COMPILE, ["-g"], "dbg"),
        ),
        feature(
            name = "default_link_flags",
            enabled = True,
            flag_sets = _set(_LINK, ctx.attr.link_flags),
        ),
        # Libraries come after the objects that need them.
        feature(
            name = "link_libs",
            enabled = True,
            flag_sets = _set(_LINK, ctx.attr.link_libs),
        ),
        feature(
            name = "unfiltered_compile_flags",
            enabled = True,
            flag_sets = _set(_COMPILE, _REPRODUCIBLE + ctx.attr.unfiltered_compile_flags),
        ),
    ]
    patterns = []
    if ctx.attr.exe_suffix:
        patterns.append(artifact_name_pattern(
            category_name = "executable",
            prefix = "",
            extension = ctx.attr.exe_suffix,
        ))

    # Where the compiler's own headers are: with --define, if only the set-up knows.
    include_directories = ctx.attr.builtin_include_directories
    if ctx.attr.include_directory_define:
        include_directories = include_directories + [ctx.var.get(ctx.attr.include_directory_define, "/unknown")]
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        abi_libc_version = "unknown",
        abi_version = "unknown",
        artifact_name_patterns = patterns,
        compiler = ctx.attr.compiler,
        cxx_builtin_include_directories = include_directories,
        features = modes + flags,
        host_system_name = "local",
        target_cpu = ctx.attr.cpu,
        target_libc = "unknown",
        target_system_name = ctx.attr.triple,
        tool_paths = [tool_path(name = k, path = v) for k, v in ctx.attr.tools.items()],
        toolchain_identifier = ctx.label.name,
    )

cross_cc_toolchain_config = rule(
    implementation = _impl,
    attrs = {
        "builtin_include_directories": attr.string_list(),
        "compile_flags": attr.string_list(),
        "compiler": attr.string(mandatory = True),
        "cpu": attr.string(mandatory = True),
        "exe_suffix": attr.string(),
        "include_directory_define": attr.string(),
        "link_flags": attr.string_list(),
        "link_libs": attr.string_list(),
        "tools": attr.string_dict(),
        "triple": attr.string(mandatory = True),
        "unfiltered_compile_flags": attr.string_list(),
    },
    provides = [CcToolchainConfigInfo],
)

def legacy_toolchain_suite(name, toolchains):
    """For --crosstool_top, by which Bazel 4 also looks for a compiler. Later ones have no such thing.

    Args:
      name: What --crosstool_top names.
      toolchains: The cc_toolchain of each --cpu.
    """
    if hasattr(native, "cc_toolchain_suite"):
        # Not in //...: it cannot be analysed for the machine's own --cpu.
        native.cc_toolchain_suite(name = name, tags = ["manual"], toolchains = toolchains)
