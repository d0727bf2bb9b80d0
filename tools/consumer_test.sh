#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# Depends on weft as a user does: from a workspace of its own, with its own
# .bazelrc (none of our flags, so -O0), with folders named core/ and net/, and on
# one target at a time. Builds and runs a program for each.
#
#   tools/consumer_test.sh [LABEL...]      all that are listed below, or those named

set -euo pipefail

# A target, a header of it, what to define, and what is then true.
targets=(
  "@weft//timer:timer_wheel | weft/timer/timer_wheel.h |
      | weft::TimerWheel(weft::TimePoint()).NextDeadline() == weft::TimePoint::InfiniteFuture()"
  "@weft//core:task | weft/core/task.h |
      weft::Coro<int> One() { co_return 1; }
      | static_cast<bool>(One())"
  "@weft//loop:run | weft/loop/run.h |
      weft::Coro<int> One() { co_return 1; }
      weft::Coro<int> Sum() {
        int sum = 0;
        for (int i = 0; i < 1000000; ++i) sum += co_await One();
        co_return sum;
      }
      | weft::Run(Sum()) == 1000000"
  "@weft//net:stream | weft/net/stream.h |
      #include \"weft/loop/run.h\"
      weft::Coro<> Echo(weft::StreamReader reader, weft::StreamWriter writer) {
        absl::StatusOr<std::string> line = co_await reader.ReadLine();
        if (line.ok()) writer.Write(*line);
      }
      weft::Coro<std::string> Ask() {
        absl::StatusOr<weft::Server> server = co_await weft::StartServer(Echo, \"127.0.0.1\", 0);
        absl::StatusOr<weft::Connection> connection =
            co_await weft::OpenConnection(\"127.0.0.1\", server->port());
        connection->writer.Write(\"hello\\n\");
        absl::StatusOr<std::string> reply = co_await connection->reader.ReadLine();
        co_return *reply;
      }
      | weft::Run(Ask()) == \"hello\\n\""
  "@weft//loop:run | weft/loop/run.h |
      #include \"weft/poller/poller_registry.h\"
      std::unique_ptr<weft::Poller> MakeMine() { return weft::MakePoller(\"poll\").value(); }
      weft::Coro<bool> Two() { co_return weft::GetRunningLoop().poller_name() == \"poll\"; }
      bool RunOnMine() {
        weft::RegisterPoller({.name = \"mine\", .make = &MakeMine});
        weft::RunOptions options;
        options.poller = \"mine\";
        return weft::Run(Two(), options);
      }
      | RunOnMine()"
)

root=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
bazel=("$root/tools/bazel" "--output_base=$work/output")
finish() {
  cd "$work" && "${bazel[@]}" shutdown >/dev/null 2>&1 || true
  cd / && chmod -R u+w "$work" && rm -rf "$work"
}
trap finish EXIT
mkdir -p "$work/core" "$work/net"
cd "$work"

# Bazel before 7 reads WORKSPACE, later ones MODULE.bazel.
cat >WORKSPACE <<END
workspace(name = "consumer")

local_repository(
    name = "weft",
    path = "$root",
)

load("@weft//:weft_deps.bzl", "weft_deps")

weft_deps()
END
cat >MODULE.bazel <<END
module(name = "consumer")

bazel_dep(name = "weft")
local_path_override(module_name = "weft", path = "$root")
bazel_dep(name = "rules_cc", version = "0.0.17")
END
# The import says where this machine has the dependencies, and nothing else.
"${bazel[@]}" version >/dev/null 2>&1 || true
cat >.bazelrc <<END
build --cxxopt=-std=c++20
try-import $root/.bazelrc.offline
END

for folder in core net; do
  cat >"$folder/BUILD" <<END
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "mine",
    hdrs = glob(["*.h"]),
    visibility = ["//visibility:public"],
)
END
done
# Named as ours are, but not like them inside.
for header in core/task.h core/runnable.h core/future.h net/stream.h net/socket.h; do
  guard=MINE_$(tr 'a-z/.' 'A-Z__' <<<"$header")_
  printf '#ifndef %s\n#define %s\ninline int Mine_%s() { return 7; }\n#endif\n' \
    "$guard" "$guard" "$(tr '/.' '__' <<<"$header")" >"$header"
done

echo 'load("@rules_cc//cc:defs.bzl", "cc_binary")' >BUILD
programs=() names=()
for target in "${targets[@]}"; do
  IFS='|' read -r -d '' label header definitions expression <<<"$target" || true
  label=${label// /} header=${header// /}
  if (($#)) && [[ " $* " != *" $label "* ]]; then continue; fi
  program=use_${#programs[@]}_$(tr -c 'a-z0-9\n' _ <<<"${label#@weft//}")
  cat >"$program.cc" <<END
#include "$header"

#include <cstdio>
#include <string>

#include "core/task.h"
#include "net/stream.h"

$definitions
int main() {
  const bool is_right = $expression;
  const bool is_mine = Mine_core_task_h() + Mine_net_stream_h() == 14;
  std::printf("%s\n", is_right && is_mine ? "right" : "wrong");
  return is_right && is_mine ? 0 : 1;
}
END
  cat >>BUILD <<END

cc_binary(
    name = "$program",
    srcs = ["$program.cc"],
    deps = [
        "//core:mine",
        "//net:mine",
        "$label",
    ],
)
END
  programs+=("$program")
  names+=("$label")
done

failed=0
for i in "${!programs[@]}"; do
  if "${bazel[@]}" build "//:${programs[i]}" >"$work/log" 2>&1 </dev/null &&
    "bazel-bin/${programs[i]}" >>"$work/log" 2>&1; then
    printf '  %-40s builds and runs\n' "${names[i]}"
  else
    printf '  %-40s FAILED\n' "${names[i]}"
    tail -n 30 "$work/log"
    failed=1
  fi
done
exit $failed
