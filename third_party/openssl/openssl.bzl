# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""The machine's OpenSSL 3, as @weft_openssl//:openssl. WEFT_OPENSSL says where it is, or "none"."""

load("//third_party/system_library:system_library.bzl", "system_library_rule")

_PROBE = """
#include <openssl/ssl.h>
#if OPENSSL_VERSION_MAJOR < 3
#error "this is OpenSSL " OPENSSL_VERSION_TEXT
#endif
int main(void) { return SSL_CTX_new(TLS_method()) == 0; }
"""

_openssl_library = system_library_rule(variable = "WEFT_OPENSSL")

def openssl_repository(name):
    _openssl_library(
        name = name,
        headers = ["include/openssl/*.h"],
        library = "openssl",
        linkopts = ["-lssl", "-lcrypto"],
        package = "libssl-dev",
        probe = _PROBE,
        variable = "WEFT_OPENSSL",
        without = "TLS (//net:tls and what needs it) is left out, as there is no OpenSSL 3",
    )
