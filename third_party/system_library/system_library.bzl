# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""A library of the machine's, as a repository: @NAME//:LIBRARY.

Looked for by compiling and linking a few lines of C. Where it is not found, what needs it is
incompatible with the machine: `build //...` and `test //...` pass it over.
"""

_BUILD = """
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "{library}",
    hdrs = glob({headers}, allow_empty = True),
    includes = {includes},
    linkopts = {linkopts},
    target_compatible_with = {compatible},
    visibility = ["//visibility:public"],
)
"""

_FOUND = """
# Whether it is there; and of a target that needs it: target_compatible_with = COMPATIBLE_WITH.
IS_FOUND = {found}
COMPATIBLE_WITH = {compatible}
"""

# It is the host's, so it is of no use for other systems.
_SYSTEMS = {
    "freebsd": "@platforms//os:freebsd",
    "linux": "@platforms//os:linux",
    "mac os x": "@platforms//os:osx",
    "openbsd": "@platforms//os:openbsd",
}

def _compiler(ctx):
    named = ctx.os.environ.get("CC", "")
    for name in [named, "cc", "gcc", "clang", "clang-16"]:
        if name.startswith("/"):
            return name
        if name and ctx.which(name):
            return ctx.which(name)
    return None

def _why_not(ctx, root, linkopts):
    """Why it cannot be used; empty if it can."""
    if root == "none":
        return "{} is \"none\"".format(ctx.attr.variable)
    if root and not ctx.path(root + "/include").exists:
        return "there is no {}/include".format(root)
    if ctx.os.name.lower() not in _SYSTEMS:
        return "weft does not know where {} has it".format(ctx.os.name)
    compiler = _compiler(ctx)
    if not compiler:
        return "there is no C compiler to look for it"
    ctx.file("probe.c", ctx.attr.probe)
    includes = ["-I", root + "/include"] if root else []
    done = ctx.execute([compiler] + includes + ["probe.c", "-o", "probe"] + linkopts)
    if done.return_code == 0:
        return ""
    first = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
    return first[0] if first else done.stderr

def _system_library_impl(ctx):
    root = ctx.os.environ.get(ctx.attr.variable, "") if ctx.attr.variable else ""
    linkopts = ctx.attr.linkopts
    if root and root != "none":
        linkopts = ["-L{}/lib".format(root), "-Wl,-rpath,{}/lib".format(root)] + linkopts
    why_not = _why_not(ctx, root, linkopts)
    compatible = ["@platforms//:incompatible"] if why_not else [_SYSTEMS[ctx.os.name.lower()]]
    if why_not:
        if ctx.attr.without:
            # buildifier: disable=print
            print("weft: {}: {}. Debian: apt-get install {}; elsewhere say where it is by --repo_env={}=/prefix. Then: bazel sync --configure, or shutdown".format(
                ctx.attr.without,
                why_not,
                ctx.attr.package,
                ctx.attr.variable,
            ))
    elif root:
        ctx.symlink(root + "/include", "include")
    ctx.file("BUILD", _BUILD.format(
        compatible = compatible,
        headers = ctx.attr.headers,
        includes = ["include"] if root and not why_not else [],
        library = ctx.attr.library,
        linkopts = linkopts,
    ))
    ctx.file("found.bzl", _FOUND.format(compatible = compatible, found = not why_not))

# `variable`: of the environment, or of --repo_env, that says where it is (a folder with include/
# and lib/), or "none". `without`: what is said if it is not there; nothing, if it is empty.
_ATTRIBUTES = {
    "headers": attr.string_list(),
    "library": attr.string(mandatory = True),
    "linkopts": attr.string_list(),
    "package": attr.string(mandatory = True),
    "probe": attr.string(mandatory = True),
    "variable": attr.string(),
    "without": attr.string(),
}

def system_library_rule(variable = None):
    """The repository rule for a library.

    Args:
      variable: That of the attribute; Bazel wants to know it beforehand.

    Returns:
      A rule, with the attributes above.
    """
    return repository_rule(
        implementation = _system_library_impl,
        attrs = _ATTRIBUTES,
        configure = True,
        doc = "Finds a library of the machine's.",
        environ = ["CC"] + ([variable] if variable else []),
        local = True,
    )
