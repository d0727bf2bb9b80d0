// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "weft/net/headers_windows.h"
#include "weft/net/test_net.h"

namespace weft {
namespace {

// What NtQuerySystemInformation(SystemExtendedHandleInformation) tells: all that is open on
// the machine.
struct OpenHandle {
  void* object;
  ULONG_PTR process;
  ULONG_PTR value;
  ULONG access;
  USHORT creator;
  USHORT type;
  ULONG attributes;
  ULONG reserved;
};
struct OpenHandles {
  ULONG_PTR count;
  ULONG_PTR reserved;
  OpenHandle handles[1];
};

constexpr auto kExtendedHandleInformation = static_cast<SYSTEM_INFORMATION_CLASS>(64);

std::vector<OpenHandle> HandlesOfThisProcess() {
  std::vector<char> buffer(1 << 16);
  while (true) {
    ULONG size = 0;
    const NTSTATUS status = ::NtQuerySystemInformation(kExtendedHandleInformation, buffer.data(),
                                                       static_cast<ULONG>(buffer.size()), &size);
    if (status >= 0) break;
    if (buffer.size() > (1u << 26)) return {};
    buffer.resize(buffer.size() * 2);
  }
  const auto* all = reinterpret_cast<const OpenHandles*>(buffer.data());
  std::vector<OpenHandle> ours;
  for (ULONG_PTR i = 0; i < all->count; ++i) {
    if (all->handles[i].process == ::GetCurrentProcessId()) ours.push_back(all->handles[i]);
  }
  return ours;
}

bool IsWine() {
  return ::GetProcAddress(::GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != nullptr;
}

}  // namespace

// A thread, a mutex and the like come and go with what the system does by itself; sockets
// and pipes are files to it.
int CountDescriptors() {
  const HANDLE file = ::CreateFileW(L"NUL", GENERIC_READ, 0, nullptr, OPEN_EXISTING, 0, nullptr);
  const std::vector<OpenHandle> handles = HandlesOfThisProcess();
  ::CloseHandle(file);
  int type = -1;
  for (const OpenHandle& handle : handles) {
    if (handle.value == reinterpret_cast<ULONG_PTR>(file)) type = handle.type;
  }
  int count = -1;  // `file`.
  for (const OpenHandle& handle : handles) count += handle.type == type ? 1 : 0;
  return count;
}

bool IsInherited(NativeHandle handle) {
  DWORD flags = HANDLE_FLAG_INHERIT;
  ::GetHandleInformation(reinterpret_cast<HANDLE>(handle), &flags);
  return (flags & HANDLE_FLAG_INHERIT) != 0;
}

bool HasUnixSockets() { return false; }

bool CanSharePorts() { return false; }

// Wine 8 knows no MCAST_JOIN_GROUP, which alone takes an interface by its number.
bool HasMulticast() { return !IsWine(); }

// Wine 8 takes the error of a socket for itself when no request waits for it: recv() says 0,
// again and again, and WSARecv() 0 bytes. Windows says WSAECONNRESET.
bool KeepsResets() { return !IsWine(); }
bool TellsEndsFromResets() { return false; }

// Of Windows it is documented for who receives, and not for who sends. Wine 8 forgets some: recv()
// says WSAEWOULDBLOCK, a WSARecv() that waits goes on waiting, until another has been sent.
bool TellsOfUnreachablePorts() { return false; }

ShortDirectory::ShortDirectory() {
  char folder[MAX_PATH];
  ::GetTempPathA(MAX_PATH, folder);
  LARGE_INTEGER now;
  ::QueryPerformanceCounter(&now);
  path_ = absl::StrCat(folder, "weft.", ::GetCurrentProcessId(), ".", now.QuadPart);
  EXPECT_TRUE(::CreateDirectoryA(path_.c_str(), nullptr)) << path_;
}

ShortDirectory::~ShortDirectory() {
  EXPECT_TRUE(::RemoveDirectoryA(path_.c_str())) << path_ << " is not empty";
}

}  // namespace weft
