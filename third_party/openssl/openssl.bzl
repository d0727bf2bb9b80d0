# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""The machine's OpenSSL 3, as @weft_openssl//:openssl.

Looked for by compiling and linking three lines of C. Where it is not found, what needs it is
incompatible with the machine: `build //...` and `test //...` pass it over. WEFT_OPENSSL, in the
environment or by --repo_env, says where it is (a folder with include/ and lib/), or is "none".
"""

_PROBE = """
#include <openssl/ssl.h>
#if OPENSSL_VERSION_MAJOR < 3
#error "this is OpenSSL " OPENSSL_VERSION_TEXT
#endif
int main(void) { return SSL_CTX_new(TLS_method()) == 0; }
"""

_BUILD = """
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "openssl",
    hdrs = glob(["include/openssl/*.h"], allow_empty = True),
    includes = {includes},
    linkopts = {linkopts},
    target_compatible_with = {compatible},
    visibility = ["//visibility:public"],
)
"""

_FOUND = """
# Of a target that needs OpenSSL: target_compatible_with = OPENSSL.
OPENSSL = {compatible}
"""

# It is the host's, so it is of no use for other systems.
_SYSTEMS = {
    "freebsd": "@platforms//os:freebsd",
    "linux": "@platforms//os:linux",
    "mac os x": "@platforms//os:macos",
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
        return "WEFT_OPENSSL is \"none\""
    if root and not ctx.path(root + "/include/openssl/ssl.h").exists:
        return "there is no {}/include/openssl/ssl.h".format(root)
    if ctx.os.name.lower() not in _SYSTEMS:
        return "weft does not know where {} has it".format(ctx.os.name)
    compiler = _compiler(ctx)
    if not compiler:
        return "there is no C compiler to look for it"
    ctx.file("probe.c", _PROBE)
    includes = ["-I", root + "/include"] if root else []
    done = ctx.execute([compiler] + includes + ["probe.c", "-o", "probe"] + linkopts)
    if done.return_code == 0:
        return ""
    first = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
    return first[0] if first else done.stderr

def _openssl_impl(ctx):
    root = ctx.os.environ.get("WEFT_OPENSSL", "")
    linkopts = ["-lssl", "-lcrypto"]
    if root and root != "none":
        linkopts = ["-L{}/lib".format(root), "-Wl,-rpath,{}/lib".format(root)] + linkopts
    why_not = _why_not(ctx, root, linkopts)
    compatible = ["@platforms//:incompatible"] if why_not else [_SYSTEMS[ctx.os.name.lower()]]
    if why_not:
        # buildifier: disable=print
        print("weft: TLS (//net:tls and what needs it) is left out, as there is no OpenSSL 3: {}. Debian: apt-get install libssl-dev; elsewhere say where it is by --repo_env=WEFT_OPENSSL=/prefix. Then: bazel sync --configure, or shutdown".format(why_not))
    elif root:
        ctx.symlink(root + "/include", "include")
    ctx.file("BUILD", _BUILD.format(
        compatible = compatible,
        includes = ["include"] if root and not why_not else [],
        linkopts = linkopts,
    ))
    ctx.file("found.bzl", _FOUND.format(compatible = compatible))

openssl_repository = repository_rule(
    implementation = _openssl_impl,
    configure = True,
    doc = "Finds the machine's OpenSSL 3.",
    environ = ["CC", "WEFT_OPENSSL"],
    local = True,
)
