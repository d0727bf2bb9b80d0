# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""llhttp.bzl for MODULE.bazel. Bazel before 6 cannot read this file, and need not."""

load(":llhttp.bzl", "llhttp_repository")

def _llhttp_impl(_):
    llhttp_repository(name = "weft_llhttp")

llhttp = module_extension(implementation = _llhttp_impl)
