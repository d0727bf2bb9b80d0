// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmark/benchmark.h"
#include "weft/smoke/smoke.h"

void BM_Half(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(weft::Half(4));
}
BENCHMARK(BM_Half);
