// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <windows.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "weft/executor/thread_name.h"

namespace weft::internal {

void SetThreadName(const std::string& prefix, int number) {
  // Any length. Since Windows 10 1607; before, threads have no names that stay.
  using SetDescription = HRESULT(WINAPI*)(HANDLE, PCWSTR);
  static const auto set = reinterpret_cast<SetDescription>(reinterpret_cast<void*>(
      ::GetProcAddress(::GetModuleHandleW(L"kernel32.dll"), "SetThreadDescription")));
  if (set == nullptr) return;
  const std::string name = absl::StrCat(prefix, "_", number);
  std::wstring wide(name.size(), L'\0');
  const int length = ::MultiByteToWideChar(CP_UTF8, 0, name.data(), static_cast<int>(name.size()),
                                           wide.data(), static_cast<int>(wide.size()));
  wide.resize(static_cast<size_t>(length));
  set(::GetCurrentThread(), wide.c_str());
}

}  // namespace weft::internal
