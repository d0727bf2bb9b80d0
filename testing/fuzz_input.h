// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_FUZZ_INPUT_H_
#define WEFT_TESTING_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace weft {

// FuzzInput
//
// What a fuzzer has made up, as decisions and text. Where it ends, all that follows is 0,
// so every input means something.
//
//   extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
//     weft::FuzzInput input(data, size);
//     const size_t first_part = input.Byte();
//     std::string_view text = input.Rest();
//     ...
//     weft::FuzzCheck(whole == in_parts, "it depends on how it is cut");
//     return 0;
//   }
//
// See weft_fuzz_test() in tools/weft.bzl.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }

  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }

  // Less than `bound`, of one or two bytes. REQUIRES: bound > 0.
  size_t Below(size_t bound) {
    const size_t number = bound <= 256 ? Byte() : Byte() | static_cast<size_t>(Byte()) << 8;
    return number % bound;
  }

  // The next `count` bytes, or as many as there are.
  std::string_view Take(size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  // All that is left.
  std::string_view Rest() { return Take(rest_.size()); }

 private:
  std::string_view rest_;
};

// Ends the process if `condition` is not so, which is how a fuzzer notices.
inline void FuzzCheck(bool condition, std::string_view what) {
  if (condition) return;
  std::cerr << "the fuzzer has found: " << what << std::endl;
  std::abort();
}

}  // namespace weft

#endif  // WEFT_TESTING_FUZZ_INPUT_H_
