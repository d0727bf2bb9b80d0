# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""llhttp, a parser of HTTP/1 in C, as @weft_llhttp//:llhttp.

Its sources are taken from the first of these that has them: the folder that WEFT_LLHTTP names, in the
environment or by --repo_env (one with include/llhttp.h and src/, as llhttp's releases are); Debian's
package node-llhttp; the release, downloaded. Where none has, or WEFT_LLHTTP is "none", what needs it is
incompatible with the machine: `build //...` and `test //...` pass it over.
"""

_URL = "https://github.com/nodejs/llhttp/archive/refs/tags/release/v8.1.0.tar.gz"
_SHA256 = "9da0d23453e8e242cf3b2bc5d6fb70b1517b8a70520065fcbad6be787e86638e"
_PREFIX = "llhttp-release-v8.1.0"

_HEADER = "include/llhttp.h"
_SOURCES = ["src/api.c", "src/http.c", "src/llhttp.c"]

_DEBIAN = {
    "include/llhttp.h": "/usr/share/include/llhttp/llhttp.h",
    "src/api.c": "/usr/share/llhttp/api.c",
    "src/http.c": "/usr/share/llhttp/http.c",
    "src/llhttp.c": "/usr/share/llhttp/llhttp.c",
}

_BUILD = """
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "llhttp",
    srcs = {srcs},
    hdrs = {hdrs},
    includes = ["include"],
    target_compatible_with = {compatible},
    visibility = ["//visibility:public"],
)
"""

_FOUND = """
# Of a target that needs llhttp: target_compatible_with = LLHTTP.
LLHTTP = {compatible}
"""

def _link(ctx, files):
    """Puts the files in place. The name of one that is not there, or None."""
    for path in files.values():
        if not ctx.path(path).exists:
            return path
    for name, path in files.items():
        ctx.symlink(path, name)
    return None

def _why_not(ctx):
    """Brings the sources. Why that cannot be; empty if it could."""
    named = ctx.os.environ.get("WEFT_LLHTTP", "")
    if named == "none":
        return "WEFT_LLHTTP is \"none\""
    if named:
        missing = _link(ctx, {name: named + "/" + name for name in [_HEADER] + _SOURCES})
        return "there is no {}".format(missing) if missing else ""
    if not _link(ctx, _DEBIAN):
        return ""
    fetched = ctx.download_and_extract(
        _URL,
        allow_fail = True,
        sha256 = _SHA256,
        stripPrefix = _PREFIX,
    )
    return "" if fetched.success else "it could not be downloaded"

def _llhttp_impl(ctx):
    why_not = _why_not(ctx)
    compatible = ["@platforms//:incompatible"] if why_not else []
    if why_not:
        # buildifier: disable=print
        print("weft: the HTTP server among the examples is left out, as there is no llhttp: {}. Debian: apt-get install node-llhttp; elsewhere say where a release of it is by --repo_env=WEFT_LLHTTP=/folder. Then: bazel sync --configure, or shutdown".format(why_not))
    ctx.file("BUILD", _BUILD.format(
        compatible = compatible,
        hdrs = [] if why_not else [_HEADER],
        srcs = [] if why_not else _SOURCES,
    ))
    ctx.file("found.bzl", _FOUND.format(compatible = compatible))

llhttp_repository = repository_rule(
    implementation = _llhttp_impl,
    configure = True,
    doc = "Finds llhttp, or fetches it.",
    environ = ["WEFT_LLHTTP"],
    local = True,
)
