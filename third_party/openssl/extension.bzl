# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""openssl.bzl for MODULE.bazel. Bazel before 6 cannot read this file, and need not."""

load(":openssl.bzl", "openssl_repository")

def _openssl_impl(_):
    openssl_repository(name = "weft_openssl")

openssl = module_extension(implementation = _openssl_impl)
