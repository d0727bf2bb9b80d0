# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""The rules of this repository: how weft's targets are built, and what may depend on what.

Every target of weft's C++ code is made by one of these. They add the flags of our own code (a
user's is left alone), give headers their "weft/" prefix, and keep the order of the folders.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

# A folder may depend on those before it; "" is the root, //:weft.
_ORDER = [
    "core",
    "timer",
    "poller",
    "executor",
    "sync",
    "loop",
    "net",
    "process",
    "",
    "testing",
    "examples",
    "bench",
]

# These know less than their place would allow.
_ONLY = {
    "executor": ["core"],
    "poller": ["core"],
    "sync": ["core"],
    "timer": ["core"],
}

_COPTS = ["-std=c++20", "-Wall", "-Wextra"]

_LINKOPTS = select({
    "@platforms//os:windows": [],
    "//conditions:default": ["-pthread"],
})

def _folder(label):
    """The folder of a label of ours, or None if it is somebody else's or of this package."""
    if label.startswith("@weft//"):
        label = label[len("@weft"):]
    if not label.startswith("//"):
        return None
    return label[2:].split(":")[0].split("/")[0]

def _describe(folder):
    return folder + "/" if folder else "//:weft"

def order_error(package, name, deps, also = []):
    """What is wrong with the dependencies of a target of ours, or None.

    Args:
      package: The package of the target.
      name: The name of the target.
      deps: Its dependencies.
      also: Later folders that it may know all the same.

    Returns:
      A message that names the target, the dependency and the order.
    """
    own = package.split("/")[0]
    if own not in _ORDER:
        return None
    if type(deps) == "select":
        return "//{}:{}: deps has a select(), which cannot be checked against the order of the folders. Use platform_deps = {{condition: [labels]}}.".format(package, name)
    allowed = _ONLY.get(own, _ORDER[:_ORDER.index(own)]) + [own] + also
    for dep in deps:
        folder = _folder(dep)
        if folder != None and folder in _ORDER and folder not in allowed:
            return "//{}:{} may not depend on {}: {} may depend on {}. The order of the folders is {} (tools/weft.bzl).".format(
                package,
                name,
                dep,
                _describe(own),
                ", ".join([_describe(f) for f in allowed if f != own]) or "no other folder",
                " < ".join([_describe(f) for f in _ORDER]),
            )
    return None

def _check_order(name, deps, also):
    error = order_error(native.package_name(), name, deps, also)
    if error:
        fail(error)

def _deps(name, deps, platform_deps, also = []):
    """All dependencies, after a look at their order."""
    _check_order(name, deps, also)
    if not platform_deps:
        return deps
    for extra in platform_deps.values():
        _check_order(name, extra, also)
    cases = {"//conditions:default": []}
    cases.update(platform_deps)
    return deps + select(cases)

def weft_library(name, srcs = [], hdrs = [], deps = [], platform_deps = {}, copts = [], linkopts = [], testonly = False, **kwargs):
    """A library whose headers are included as "weft/FOLDER/NAME.h".

    Args:
      name: Usually that of the header.
      srcs: Sources, or a select() over whole files. No headers: only those in hdrs get the prefix.
      hdrs: Headers. What no user may touch is in namespace internal.
      deps: A list; it may not be a select().
      platform_deps: More deps by condition, as select() takes them; the default is none.
      copts: More flags for the sources.
      linkopts: More flags for whatever links this.
      testonly: Whether it is for tests, and may depend on testing/ too, wherever it lives.
      **kwargs: As for cc_library.
    """
    if type(srcs) != "select":
        for src in srcs:
            if src.endswith(".h"):
                fail("//{}:{}: list {} in hdrs, so that it can be included with its prefix.".format(native.package_name(), name, src))
    package = native.package_name()
    if package:
        kwargs["strip_include_prefix"] = "/" + package
    cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = _COPTS + copts,
        include_prefix = "weft/" + package if package else "weft",
        linkopts = _LINKOPTS + linkopts,
        testonly = testonly,
        visibility = kwargs.pop("visibility", ["//visibility:public"]),
        deps = _deps(name, deps, platform_deps, also = ["testing"] if testonly else []),
        **kwargs
    )

# target_compatible_with: of what is about POSIX, and not there on Windows.
POSIX = select({
    "@platforms//os:windows": ["@platforms//:incompatible"],
    "//conditions:default": [],
})

# The backends that a test can run on, and where each can be built. The first is what a
# test runs on by itself, on Linux; elsewhere that is the default of the system.
_POLLERS = {
    "epoll": ["@platforms//os:linux"],
    "io_uring": ["@platforms//os:linux"],
    "poll": POSIX,
}

POLLERS = _POLLERS.keys()

def poller_error(package, name, pollers):
    """What is wrong with the backends that a test names, or None.

    Args:
      package: The package of the test.
      name: The name of the test.
      pollers: The names of the backends.

    Returns:
      A message that names the test, the backend, and those that there are.
    """
    for poller in pollers:
        if poller not in _POLLERS:
            return "//{}:{}: there is no poller {}. Those of tools/weft.bzl are {}.".format(
                package,
                name,
                poller,
                ", ".join(POLLERS),
            )
    return None

def _test_on_poller_impl(ctx):
    # No script in between: what a debugger or a profiler sees is the program.
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = program, target_file = ctx.executable.test, is_executable = True)
    runfiles = ctx.runfiles(files = [ctx.executable.test])
    return [
        DefaultInfo(
            executable = program,
            runfiles = runfiles.merge(ctx.attr.test[DefaultInfo].default_runfiles),
        ),
        testing.TestEnvironment({"WEFT_POLLER": ctx.attr.poller}),
    ]

# The program of another test, built and linked once, with WEFT_POLLER set.
_on_poller_test = rule(
    implementation = _test_on_poller_impl,
    attrs = {
        "poller": attr.string(mandatory = True),
        "test": attr.label(cfg = "target", executable = True, mandatory = True),
    },
    test = True,
)

def _both(one, other):
    """Where both can be built. A select() here is POSIX."""
    if type(one) == "select" and type(other) == "select":
        return one
    if type(one) == "select" or type(other) == "select":
        return one + other
    return one + [c for c in other if c not in one]

def test_on_pollers(test, pollers = POLLERS, target_compatible_with = [], **kwargs):
    """Runs a test of this package on other backends too: TEST_on_io_uring and so on.

    The test itself is the run on the first of POLLERS, Linux's default. A run on a backend
    that does not work on the machine says so in its log, and skips: //testing:test_poller.

    Args:
      test: Its name. A GoogleTest, or a script that runs our programs.
      pollers: The names of the backends.
      target_compatible_with: That of the test.
      **kwargs: Of the test: size, args, tags and the like.
    """
    error = poller_error(native.package_name(), test, pollers)
    if error:
        fail(error)
    for poller in pollers:
        if poller == POLLERS[0]:
            continue
        _on_poller_test(
            name = "{}_on_{}".format(test, poller),
            poller = poller,
            target_compatible_with = _both(target_compatible_with, _POLLERS[poller]),
            test = ":" + test,
            **kwargs
        )

def weft_test(name, deps = [], platform_deps = {}, own_main = False, size = "small", copts = [], linkopts = [], pollers = [], **kwargs):
    """A GoogleTest. It may also depend on testing/, wherever it lives.

    Args:
      name: That of what it tests, and _test.
      deps: A list; it may not be a select(). GoogleTest is added.
      platform_deps: More deps by condition, as select() takes them.
      own_main: Whether the sources have a main() of their own.
      size: As for cc_test.
      copts: More flags for the sources.
      linkopts: More flags for the linker.
      pollers: Backends to run on as well, each a target: see test_on_pollers(). For those
        whose subject goes through the kernel; the program is linked once.
      **kwargs: As for cc_test.
    """
    gtest = "@com_google_googletest//:gtest" if own_main else "@com_google_googletest//:gtest_main"
    if pollers:
        deps = deps + ["//testing:test_poller"]
        passed_on = ["args", "flaky", "shard_count", "tags", "target_compatible_with", "timeout"]
        also = {key: kwargs[key] for key in passed_on if key in kwargs}
        test_on_pollers(test = name, pollers = pollers, size = size, **also)
    cc_test(
        name = name,
        size = size,
        copts = _COPTS + copts,
        linkopts = _LINKOPTS + linkopts,
        deps = _deps(name, deps, platform_deps, also = ["testing"]) + [gtest],
        **kwargs
    )

def weft_fuzz_test(name, corpus, mutants = 3000, deps = [], platform_deps = {}, size = "small", copts = [], linkopts = [], **kwargs):
    """A fuzz target: LLVMFuzzerTestOneInput(), and inputs to begin with.

    With --config=fuzz it is a program of libFuzzer, to be run for as long as one likes:

      tools/bazel run --config=fuzz //net:stream_reader_fuzz_test -- -max_total_time=60

    Otherwise it is a test like any other, which runs the corpus and some thousand mutants of it
    (testing/fuzz_main.cc).

    Args:
      name: That of what it feeds, and _fuzz_test.
      corpus: A folder beside it, with the inputs.
      mutants: How many of them the ordinary test runs.
      deps: A list; it may not be a select(). //testing:fuzz_input is added.
      platform_deps: More deps by condition, as select() takes them.
      size: As for cc_test.
      copts: More flags for the sources.
      linkopts: More flags for the linker.
      **kwargs: As for cc_test.
    """
    cc_test(
        name = name,
        size = size,
        args = [native.package_name() + "/" + corpus] + select({
            "//tools:fuzzing": [],
            "//conditions:default": ["-mutants=%d" % mutants],
        }),
        copts = _COPTS + copts,
        data = native.glob([corpus + "/*"]),
        tags = kwargs.pop("tags", []) + ["fuzz"],
        linkopts = _LINKOPTS + linkopts + select({
            "//tools:fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = _deps(name, deps, platform_deps, also = ["testing"]) + ["//testing:fuzz_input"] + select({
            "//tools:fuzzing": [],
            "//conditions:default": ["//testing:fuzz_main"],
        }),
        **kwargs
    )

def weft_binary(name, deps = [], platform_deps = {}, copts = [], linkopts = [], **kwargs):
    """A program.

    Args:
      name: That of its source.
      deps: A list; it may not be a select().
      platform_deps: More deps by condition, as select() takes them.
      copts: More flags for the sources.
      linkopts: More flags for the linker.
      **kwargs: As for cc_binary.
    """
    cc_binary(
        name = name,
        copts = _COPTS + copts,
        linkopts = _LINKOPTS + linkopts,
        visibility = kwargs.pop("visibility", ["//visibility:public"]),
        deps = _deps(name, deps, platform_deps),
        **kwargs
    )

def weft_benchmark(name, deps = [], platform_deps = {}, own_main = False, copts = [], linkopts = [], **kwargs):
    """A program over Google Benchmark. It may also depend on testing/ and bench/.

    `build //...` builds it, `test //...` does not run it.

    Args:
      name: That of what it measures, and _benchmark.
      deps: A list; it may not be a select(). Google Benchmark is added.
      platform_deps: More deps by condition, as select() takes them.
      own_main: Whether the sources have a main() of their own.
      copts: More flags for the sources.
      linkopts: More flags for the linker.
      **kwargs: As for cc_binary.
    """
    benchmark = "benchmark" if own_main else "benchmark_main"
    cc_binary(
        name = name,
        testonly = True,
        copts = _COPTS + copts,
        linkopts = _LINKOPTS + linkopts,
        visibility = kwargs.pop("visibility", ["//visibility:public"]),
        deps = _deps(name, deps, platform_deps, also = ["testing", "bench"]) +
               ["@com_github_google_benchmark//:" + benchmark],
        **kwargs
    )
