# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""What weft depends on, for WORKSPACE files."""

load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")
load("//third_party/llhttp:llhttp.bzl", "llhttp_repository")
load("//third_party/openssl:openssl.bzl", "openssl_repository")

def _maybe(name, **kwargs):
    if not native.existing_rule(name):
        http_archive(name = name, **kwargs)

def weft_deps():
    """Declares weft's dependencies. A name that is declared already stays as it is."""
    _maybe(
        name = "bazel_skylib",
        sha256 = "74d544d96f4a5bb630d465ca8bbcfe231e3594e5aae57e1edbf17a6eb3ca2506",
        urls = ["https://github.com/bazelbuild/bazel-skylib/releases/download/1.3.0/bazel-skylib-1.3.0.tar.gz"],
    )
    _maybe(
        name = "com_github_google_benchmark",
        sha256 = "6430e4092653380d9dc4ccb45a1e2dc9259d581f4866dc0759713126056bc1d7",
        strip_prefix = "benchmark-1.7.1",
        urls = ["https://github.com/google/benchmark/archive/refs/tags/v1.7.1.tar.gz"],
    )
    _maybe(
        name = "com_google_absl",
        sha256 = "91ac87d30cc6d79f9ab974c51874a704de9c2647c40f6932597329a282217ba8",
        strip_prefix = "abseil-cpp-20220623.1",
        urls = ["https://github.com/abseil/abseil-cpp/archive/refs/tags/20220623.1.tar.gz"],
    )
    _maybe(
        name = "com_google_googletest",
        sha256 = "81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2",
        strip_prefix = "googletest-release-1.12.1",
        urls = ["https://github.com/google/googletest/archive/refs/tags/release-1.12.1.tar.gz"],
    )
    _maybe(
        name = "platforms",
        sha256 = "5308fc1d8865406a49427ba24a9ab53087f17f5266a7aabbfc28823f3916e1ca",
        urls = ["https://github.com/bazelbuild/platforms/releases/download/0.0.6/platforms-0.0.6.tar.gz"],
    )
    _maybe(
        name = "rules_cc",
        sha256 = "58bff40957ace85c2de21ebfc72e53ed3a0d33af8cc20abd0ceec55c63be7de2",
        urls = ["https://github.com/bazelbuild/rules_cc/releases/download/0.0.2/rules_cc-0.0.2.tar.gz"],
    )

    # The machine's own; without it TLS is left out.
    if not native.existing_rule("weft_openssl"):
        openssl_repository(name = "weft_openssl")

    # The machine's own, or the release; without it an example is left out.
    if not native.existing_rule("weft_llhttp"):
        llhttp_repository(name = "weft_llhttp")
