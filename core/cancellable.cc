// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/cancellable.h"

#include <typeinfo>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/core/errors.h"

namespace weft::internal {
namespace {

// One that waits for answers from below.
struct Place {
  Cancellable* node;
  size_t count = 0;
  CancelAnswer answers = CancelAnswer::kRefused;

  void Count(CancelAnswer answer) {
    ++count;
    if (answer == CancelAnswer::kAccepted || answers == CancelAnswer::kRefused) answers = answer;
  }
};

}  // namespace

CancelAnswer RequestCancel(Cancellable* target, const std::exception_ptr& error) {
  absl::InlinedVector<Place, 8> above;
  Cancellable* node = target;
  while (true) {
    Cancellable::Step step = node->BeginCancel(error);
    if (step.below != nullptr) {
      above.push_back({node});
      node = step.below;
      continue;
    }
    // An answer goes up, until something has more below it.
    while (step.below == nullptr) {
      if (above.empty()) return step.answer;
      Place& place = above.back();
      place.Count(step.answer);
      step = place.node->ContinueCancel(place.count, place.answers);
      if (step.below == nullptr) above.pop_back();
    }
    node = step.below;
  }
}

std::string Cancellable::Description() const {
  const std::string name = TypeName(typeid(*this));
  return absl::StrCat("<", absl::StripPrefix(name, "weft::internal::"), ">");
}

std::exception_ptr MakeCancelledError() { return std::make_exception_ptr(CancelledError()); }

}  // namespace weft::internal
