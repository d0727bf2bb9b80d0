// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/errors.h"

#include <cxxabi.h>

#include <cstdlib>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "weft/core/bounded_depth.h"

namespace weft {
ExceptionGroup::ExceptionGroup(std::string message, std::vector<std::exception_ptr> exceptions)
    : message_(std::move(message)),
      text_(absl::StrCat(message_, " (", exceptions.size(), " sub-exception",
                         exceptions.size() == 1 ? ")" : "s)")),
      exceptions_(std::move(exceptions)) {}

// Groups may hold groups.
ExceptionGroup::~ExceptionGroup() {
  using Exceptions = std::vector<std::exception_ptr>;
  internal::BoundedDepth<Exceptions>::Destroy(std::move(exceptions_), [](Exceptions) {});
}

namespace {

// How deep groups are described, and how many of what is in each.
constexpr int kMostLevels = 4;
constexpr size_t kMostMembers = 8;

std::string Describe(const std::exception_ptr& exception, int levels);

// " [weft::ValueError: a, std::runtime_error: b]"
std::string DescribeMembers(const ExceptionGroup& group, int levels) {
  if (levels == 0) return " [...]";
  std::string text;
  for (const std::exception_ptr& each : group.exceptions()) {
    absl::StrAppend(&text, text.empty() ? " [" : ", ");
    if (&each - group.exceptions().data() == kMostMembers) return absl::StrCat(text, "...]");
    absl::StrAppend(&text, Describe(each, levels - 1));
  }
  return absl::StrCat(text, "]");
}

std::string Describe(const std::exception_ptr& exception, int levels) {
  if (exception == nullptr) return "no exception";
  try {
    std::rethrow_exception(exception);
  } catch (const ExceptionGroup& error) {
    return absl::StrCat(internal::TypeName(typeid(error)), ": ", error.what(),
                        DescribeMembers(error, levels));
  } catch (const CancelledError& error) {
    return error.message().empty() ? "weft::CancelledError"
                                   : absl::StrCat("weft::CancelledError: ", error.message());
  } catch (const std::exception& error) {
    return absl::StrCat(internal::TypeName(typeid(error)), ": ", error.what());
  } catch (const char* text) {
    return absl::StrCat("const char*: ", text);
  } catch (const std::string& text) {
    return absl::StrCat("std::string: ", text);
  } catch (int number) {
    return absl::StrCat("int: ", number);
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return type == nullptr ? "unknown exception" : internal::TypeName(*type);
  }
}

}  // namespace

std::string DescribeException(const std::exception_ptr& exception) {
  return Describe(exception, kMostLevels);
}

namespace internal {

std::string TypeName(const std::type_info& type) {
  int status = 0;
  char* name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string text = status == 0 && name != nullptr ? name : type.name();
  std::free(name);
  return text;
}

// The Itanium C++ ABI's own question, which gcc's and clang's libraries answer
// on every platform they share with us: a `throw;` and a second handler a frame
// would cost a microsecond each.
bool IsHandlingCancelledError() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  return type != nullptr && *type == typeid(CancelledError);
}
bool IsHandlingKeyboardInterrupt() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  return type != nullptr && *type == typeid(KeyboardInterrupt);
}

namespace {

// libstdc++ tells the type; elsewhere it takes a throw.
template <class Pointer>
const std::type_info* TypeOf(const Pointer& error) {
  if constexpr (requires { error.__cxa_exception_type(); }) {
    return error.__cxa_exception_type();
  } else {
    try {
      std::rethrow_exception(error);
    } catch (...) {
      return abi::__cxa_current_exception_type();
    }
  }
}

}  // namespace

bool IsCancelledError(const std::exception_ptr& error) {
  if (error == nullptr) return false;
  try {
    std::rethrow_exception(error);
  } catch (const CancelledError&) {
    return true;
  } catch (...) {
    return false;
  }
}

bool IsKeyboardInterrupt(const std::exception_ptr& error) {
  if (error == nullptr) return false;
  const std::type_info* type = TypeOf(error);
  return type != nullptr && *type == typeid(KeyboardInterrupt);
}

}  // namespace internal
}  // namespace weft
