# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""peers.bzl for MODULE.bazel. Bazel before 6 cannot read this file, and need not."""

load(":peers.bzl", "peer_repositories")

def _peers_impl(_):
    peer_repositories()

peers = module_extension(implementation = _peers_impl)
