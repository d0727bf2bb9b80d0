// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Completion by I/O completion ports. Who is first and what happens at the end is in
// `completion_poller`; here is how this kernel is asked, and what its answers mean. Compiled
// by MinGW-w64 and run under Wine 8; what is said of Windows here is from its documentation.
//
// What shapes it:
//   * An OVERLAPPED is the kernel's until its packet is taken from the port. So it lies in
//     a slot of the poller's, and not in the operation: a slot whose operation has gone is
//     an orphan, and freed by its packet. An operation with a buffer that the kernel may
//     write to waits for the packet all the same.
//   * What is done at once makes no packet (FILE_SKIP_COMPLETION_PORT_ON_SUCCESS), so
//     `Start()` is a system call, and most often the last of it.
//   * Of an overlapped send that was cancelled Windows does not tell how much it had sent.
//     So sends are tried without waiting, and a full socket is waited for and tried again:
//     one that was cancelled has sent nothing. Datagrams are received in the same way, as
//     of one that is larger than its buffer nobody says whether it makes a packet.
//   * That wait, and those for readable and writable, are AFD's, which is what select()
//     and WSAPoll() are made of on Windows and on Wine: one request, that can be cancelled
//     as any other, and whose packet comes to the port. It is not in the documentation;
//     most event loops for Windows are built on it, and it has not changed since XP.
//   * A wait for readable is asked of the kernel in `Wait()`: it is about the state at that
//     time, and not at the time of `Start()`.
//   * An idle connection waits with an empty buffer (`kRecvLent`), and takes a slab when
//     its packet has come. Nothing is received before somebody takes it; so there is
//     nothing to be kept for others, or to be lost.
//   * Closing a socket with requests under way would free its number, while packets
//     in its name are still to come. So what is in flight is cancelled first, and a look
//     at once says whether that was all, which it is on Windows.
//   * Requests on a handle that has a port are not cancelled when their thread ends. Wine
//     and other drivers may do so: what nobody has cancelled is asked for again.
//   * A handle keeps its port. Windows can give it another one; Wine 8 cannot.
//   * GetQueuedCompletionStatusEx() sleeps by the system's tick, so up to 16 ms too long.
//     TODO(perf): a waitable timer of high resolution whose APC ends an alertable sleep;
//     what settles it is a real Windows to measure on.

#include "weft/poller/iocp_poller.h"

#include <winsock2.h>
// Behind it.
#include <mswsock.h>
#include <windows.h>
#include <ws2tcpip.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "absl/base/macros.h"
#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "weft/core/block_pool.h"
#include "weft/core/clock.h"
#include "weft/core/intrusive_list.h"
#include "weft/poller/calls_by_name_windows.h"
#include "weft/poller/completion_poller.h"
#include "weft/poller/direction.h"
#include "weft/poller/errno_windows.h"
#include "weft/poller/iocp_waker_windows.h"
#include "weft/poller/is_open.h"
#include "weft/poller/perform_windows.h"
#include "weft/poller/socket_api.h"
#include "weft/poller/would_block.h"

namespace weft {

namespace {

using internal::AfdPoll;
using internal::CompletionEntry;
using internal::CompletionNote;
using internal::CompletionPoller;
using internal::DirectionOf;
using internal::ErrnoOfStatus;
using internal::FileKind;
using internal::IocpWaker;
using internal::IsWait;
using internal::kAsked;
using internal::kRead;
using internal::kStatusPending;
using internal::kWouldBlock;
using internal::kWrite;
using internal::LastError;
using internal::LastErrorOf;

SOCKET Socket(NativeHandle handle) { return static_cast<SOCKET>(handle); }
HANDLE File(NativeHandle handle) { return reinterpret_cast<HANDLE>(handle); }

ULONG ClampSize(size_t size) { return static_cast<ULONG>(std::min<size_t>(size, INT_MAX)); }

// What the kernel has while it is at a request. It begins with the OVERLAPPED.
struct Slot : OVERLAPPED {
  Operation* op = nullptr;  // Null: nobody waits for it any more.
  Slot* next = nullptr;     // In the list of all.
  Slot* previous = nullptr;
  uint32_t size = 0;
  DWORD flags = 0;       // Of a receive.
  bool is_poll = false;  // It is the wait for readiness, and not the operation itself.
  bool is_accept = false;
};

struct PollSlot : Slot {
  AfdPoll poll;
};

struct AcceptSlot : Slot {
  static constexpr DWORD kAddressSize = sizeof(sockaddr_storage) + 16;  // AcceptEx().
  NativeHandle accepted = kInvalidHandle;
  char addresses[2 * kAddressSize];
};

// What is kept in an operation.
struct Note : CompletionNote {
  Slot* slot = nullptr;  // While it is in flight.
};

// What is known of a handle.
struct Entry : CompletionEntry {
  FileKind kind = FileKind::kUnknown;  // Unknown: it has not been brought to the port.
  bool skips_port = false;             // What is done at once makes no packet.
  bool was_kept = false;               // Retired since, and kept open.
  bool is_watched = false;             // Its owner may close it without our knowledge.
};

// Handles are multiples of four.
class IocpPoller final : public CompletionPoller<Entry, Note, /*kShift=*/2> {
 public:
  IocpPoller() = default;
  ~IocpPoller() override;

  std::string_view name() const override { return "iocp"; }
  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override;
  std::shared_ptr<Waker> MakeWaker() override { return waker_; }

 private:
  static constexpr ULONG kBatch = 128;
  static constexpr int kTries = 4;

  static bool IsSocket(const Entry* entry) {
    return entry->kind == FileKind::kStream || entry->kind == FileKind::kMessages;
  }

  // Starting.
  int64_t Begin(Entry* entry, Operation* op) override;
  int64_t Fetch(Entry* entry, Operation* op, SlabPool* pool, Slab* slab) override;
  int64_t Adopt(Entry* entry);

  // Asking the kernel.
  template <class Kind>
  Kind* NewSlot(Operation* op);
  void FreeSlot(Slot* slot);
  int64_t Ask(Entry* entry, Operation* op) override;
  int64_t Submitted(Entry* entry, Operation* op, Slot* slot, bool is_ok, bool is_pending,
                    int64_t error);
  int64_t AskReceive(Entry* entry, Operation* op);
  int64_t AskFile(Entry* entry, Operation* op);
  int64_t AskAccept(Entry* entry, Operation* op);
  int64_t AskConnect(Entry* entry, Operation* op);
  int64_t AskPoll(Entry* entry, Operation* op);
  int64_t Attempt(Entry* entry, Operation* op);
  void Flush(ReadyQueue* done);

  // What it answers.
  int64_t Finished(Entry* entry, Operation* op, Slot* slot);
  static void AnnounceWithKernel(Entry* entry, Operation* op);
  int64_t FinishAccept(Operation* op, AcceptSlot* slot);
  void OnPacket(Slot* slot, ReadyQueue* done);
  bool Reap(DWORD milliseconds, ReadyQueue* done);

  // Ending.
  void CancelInFlight(Entry* entry) override;
  int64_t Close(Entry* entry, NativeHandle handle, bool keeps) override;
  bool IsIdle(Entry* entry) const;
  void Abandon(Entry* entry);

  const std::shared_ptr<IocpWaker> waker_ = std::make_shared<IocpWaker>();
  HANDLE port_ = nullptr;  // The waker's.
  Slot* slots_ = nullptr;  // All that the kernel has.
  bool was_woken_ = false;
};

// --- Starting ---

int64_t IocpPoller::Begin(Entry* entry, Operation* op) {
  const bool goes_on = IsWait(op) && (op->flags & kWaitAgain) != 0;
  if (ABSL_PREDICT_FALSE(entry->kind == FileKind::kUnknown ||
                         (entry->is_watched && !goes_on && IsIdle(entry)))) {
    const int64_t error = Adopt(entry);
    if (error != 0) return error;
  }
  if (IsWait(op)) {
    if (!IsSocket(entry)) return -EPERM;
    entry->is_watched = true;
    return kWouldBlock;
  }
  if (DirectionOf(op->opcode) == kRead && entry->has_lent) return kWouldBlock;
  return Ask(entry, op);
}

// Brings a handle to the port: 0, or a negated errno. One that is there already may have
// been closed since, if it was only watched, and its number stand for another.
int64_t IocpPoller::Adopt(Entry* entry) {
  const NativeHandle handle = entry->handle;
  if (port_ == nullptr) port_ = waker_->Open();
  if (port_ == nullptr) return LastError();
  if (!internal::IsOpen(handle)) return -EBADF;
  const FileKind kind = internal::KindOf(handle);
  if (kind == FileKind::kUnknown) return -EPERM;
  if (::CreateIoCompletionPort(File(handle), port_, 0, 0) == nullptr) {
    if (::GetLastError() != ERROR_INVALID_PARAMETER) return LastError();
    // It has a port already, or was not opened for overlapped I/O. The first may be ours,
    // if the handle was kept open, or that of a loop that it belonged to before.
    const bool was_ours = entry->was_kept || entry->is_watched;
    if (!internal::ReplacePort(File(handle), port_) && !was_ours) return -EINVAL;
  }
  entry->skips_port = ::SetFileCompletionNotificationModes(
      File(handle), FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE);
  entry->kind = kind;
  entry->was_kept = entry->is_watched = false;
  return 0;
}

int64_t IocpPoller::Fetch(Entry* entry, Operation* op, SlabPool* pool, Slab* slab) {
  *slab = pool->Take();
  if (!*slab) return -ENOMEM;
  const int64_t result = internal::Receive(op->handle, entry->kind, slab->data(), slab->size());
  if (result <= 0) slab->Reset();
  return result;
}

// --- Asking the kernel ---

// Null if there is no memory.
template <class Kind>
Kind* IocpPoller::NewSlot(Operation* op) {
  void* block = internal::AllocateBlock(sizeof(Kind));
  if (block == nullptr) return nullptr;
  Kind* slot = new (block) Kind;
  static_cast<OVERLAPPED&>(*slot) = {};
  slot->size = sizeof(Kind);
  slot->op = op;
  slot->next = slots_;
  if (slots_ != nullptr) slots_->previous = slot;
  slots_ = slot;
  return slot;
}

void IocpPoller::FreeSlot(Slot* slot) {
  if (slot->next != nullptr) slot->next->previous = slot->previous;
  (slot->previous != nullptr ? slot->previous->next : slots_) = slot->next;
  if (slot->is_accept) {
    auto* accept = static_cast<AcceptSlot*>(slot);
    if (accept->accepted != kInvalidHandle) ::closesocket(Socket(accept->accepted));
  }
  internal::FreeBlock(slot, slot->size);
}

int64_t IocpPoller::Ask(Entry* entry, Operation* op) {
  switch (op->opcode) {
    case OpCode::kWaitReadable:
    case OpCode::kWaitWritable:
      return AskPoll(entry, op);
    case OpCode::kRecv:
      // Windows peeks only in calls that do not wait.
      if (entry->kind == FileKind::kStream && op->flags == 0) return AskReceive(entry, op);
      return Attempt(entry, op);
    case OpCode::kRecvLent:
      if (entry->kind == FileKind::kPipe) return AskFile(entry, op);
      if (entry->kind != FileKind::kStream) return -EOPNOTSUPP;
      return AskReceive(entry, op);
    case OpCode::kRead:
      if (entry->kind == FileKind::kStream) return AskReceive(entry, op);
      if (IsSocket(entry)) return Attempt(entry, op);
      return AskFile(entry, op);
    case OpCode::kWrite:
      if (IsSocket(entry)) return Attempt(entry, op);
      return AskFile(entry, op);
    case OpCode::kSend:
    case OpCode::kSendMsg:
    case OpCode::kRecvMsg:
      return Attempt(entry, op);
    case OpCode::kAccept:
      if (entry->kind != FileKind::kStream) return IsSocket(entry) ? -EOPNOTSUPP : -ENOTSOCK;
      return AskAccept(entry, op);
    case OpCode::kConnect:
      if (!IsSocket(entry)) return -ENOTSOCK;
      return AskConnect(entry, op);
    case OpCode::kFsync:
      // Windows has no other than this, which waits for the disk.
      return ::FlushFileBuffers(File(op->handle)) ? 0 : LastError();
    default:
      return -EINVAL;
  }
}

// What a call has said that takes an OVERLAPPED.
int64_t IocpPoller::Submitted(Entry* entry, Operation* op, Slot* slot, bool is_ok, bool is_pending,
                              int64_t error) {
  if (is_pending || (is_ok && !entry->skips_port)) {
    NoteOf(op)->slot = slot;
    EnterKernel(op);
    return kAsked;
  }
  const int64_t result = is_ok ? Finished(entry, op, slot) : error;
  FreeSlot(slot);
  // Of a request that may wait it says that there are too many (WSARecv()).
  return result == kWouldBlock ? -ENOBUFS : result;
}

int64_t IocpPoller::AskReceive(Entry* entry, Operation* op) {
  Slot* slot = NewSlot<Slot>(op);
  if (slot == nullptr) return -ENOMEM;
  const bool is_lent = op->opcode == OpCode::kRecvLent;
  WSABUF buffer = {};
  if (!is_lent) buffer = {ClampSize(op->buffer.size), static_cast<char*>(op->buffer.data)};
  DWORD received = 0;
  const int result =
      ::WSARecv(Socket(op->handle), &buffer, 1, &received, &slot->flags, slot, nullptr);
  const bool is_pending = result != 0 && ::WSAGetLastError() == WSA_IO_PENDING;
  const int64_t error = result == 0 || is_pending ? 0 : LastErrorOf(op->handle, entry->kind);
  return Submitted(entry, op, slot, result == 0, is_pending, error);
}

int64_t IocpPoller::AskFile(Entry* entry, Operation* op) {
  const bool is_disk = entry->kind == FileKind::kDisk;
  // One that was opened for overlapped I/O has no position.
  if (is_disk && op->offset < 0) return -ESPIPE;
  Slot* slot = NewSlot<Slot>(op);
  if (slot == nullptr) return -ENOMEM;
  if (is_disk) {
    slot->Offset = static_cast<DWORD>(op->offset);
    slot->OffsetHigh = static_cast<DWORD>(op->offset >> 32);
  }
  char none;
  const bool is_lent = op->opcode == OpCode::kRecvLent;
  void* data = is_lent ? &none : op->buffer.data;
  const DWORD size = is_lent ? 0 : ClampSize(op->buffer.size);
  const bool is_ok = op->opcode == OpCode::kWrite
                         ? ::WriteFile(File(op->handle), data, size, nullptr, slot)
                         : ::ReadFile(File(op->handle), data, size, nullptr, slot);
  const bool is_pending = !is_ok && ::GetLastError() == ERROR_IO_PENDING;
  int64_t error = 0;
  if (!is_ok && !is_pending) {
    error = LastError();
    // The end; one without a buffer is told so when it fetches.
    const bool is_end = ::GetLastError() == ERROR_HANDLE_EOF || error == -EPIPE;
    if (is_end && op->opcode != OpCode::kWrite) {
      error = 0;
      if (is_lent) AnnounceWithKernel(entry, op);
    }
  }
  return Submitted(entry, op, slot, is_ok, is_pending, error);
}

int64_t IocpPoller::AskAccept(Entry* entry, Operation* op) {
  while (true) {
    SockAddr name;
    const int named = SystemSocketApi()->GetSockName(op->handle, &name);
    if (named < 0) return named;
    const bool is_v6 = reinterpret_cast<const sockaddr*>(name.bytes)->sa_family == AF_INET6;
    const NativeHandle accepted = SystemSocketApi()->Open(
        is_v6 ? SocketDomain::kInet6 : SocketDomain::kInet, SocketType::kStream);
    if (accepted < 0) return accepted;
    AcceptSlot* slot = NewSlot<AcceptSlot>(op);
    if (slot == nullptr) {
      ::closesocket(Socket(accepted));
      return -ENOMEM;
    }
    slot->is_accept = true;
    slot->accepted = accepted;
    DWORD received = 0;
    const auto accept = internal::AcceptExOf(Socket(op->handle));
    const bool is_ok = accept != nullptr &&
                       accept(Socket(op->handle), Socket(accepted), slot->addresses, 0,
                              AcceptSlot::kAddressSize, AcceptSlot::kAddressSize, &received, slot);
    const bool is_pending = !is_ok && ::WSAGetLastError() == WSA_IO_PENDING;
    const int64_t error = is_ok || is_pending ? 0 : LastErrorOf(op->handle, entry->kind);
    const int64_t result = Submitted(entry, op, slot, is_ok, is_pending, error);
    // That connection has gone before we took it; there may be others behind it.
    if (result != -ECONNRESET) return result;
  }
}

int64_t IocpPoller::AskConnect(Entry* entry, Operation* op) {
  const auto* to = reinterpret_cast<const sockaddr*>(op->address->bytes);
  const int length = static_cast<int>(op->address->length);
  if (entry->kind == FileKind::kMessages) {
    // From now on it is told of datagrams that nobody took.
    BOOL tells = TRUE;
    DWORD size = 0;
    ::WSAIoctl(Socket(op->handle), SIO_UDP_CONNRESET, &tells, sizeof(tells), nullptr, 0, &size,
               nullptr, nullptr);
    if (::connect(Socket(op->handle), to, length) == 0) return 0;
    return LastErrorOf(op->handle, entry->kind);
  }
  // ConnectEx() takes only a socket that is bound.
  sockaddr_storage own = {};
  int own_length = sizeof(own);
  if (::getsockname(Socket(op->handle), reinterpret_cast<sockaddr*>(&own), &own_length) != 0) {
    own = {};
    own.ss_family = to->sa_family;
    const int bound =
        ::bind(Socket(op->handle), reinterpret_cast<const sockaddr*>(&own),
               to->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    if (bound != 0) return LastErrorOf(op->handle, entry->kind);
  }
  Slot* slot = NewSlot<Slot>(op);
  if (slot == nullptr) return -ENOMEM;
  const auto connect = internal::ConnectExOf(Socket(op->handle));
  const bool is_ok =
      connect != nullptr && connect(Socket(op->handle), to, length, nullptr, 0, nullptr, slot);
  const bool is_pending = !is_ok && ::WSAGetLastError() == WSA_IO_PENDING;
  const int64_t error = is_ok || is_pending ? 0 : LastErrorOf(op->handle, entry->kind);
  return Submitted(entry, op, slot, is_ok, is_pending, error);
}

// Waits until the socket is readable, or writable: 0 if it is.
int64_t IocpPoller::AskPoll(Entry* entry, Operation* op) {
  PollSlot* slot = NewSlot<PollSlot>(op);
  if (slot == nullptr) return -ENOMEM;
  slot->is_poll = true;
  const LONG status = internal::StartAfdPoll(File(op->handle), DirectionOf(op->opcode) == kWrite,
                                             &slot->poll, slot);
  const bool is_ok = status >= 0 && status != kStatusPending;
  int64_t error = 0;
  if (status < 0) {
    error = -ErrnoOfStatus(static_cast<uint32_t>(status));
    if (!internal::IsOpen(op->handle)) error = -EBADF;
  }
  return Submitted(entry, op, slot, is_ok, status == kStatusPending, error);
}

// What is tried first, and waited for if it would have to wait.
int64_t IocpPoller::Attempt(Entry* entry, Operation* op) {
  for (int i = 0; i < kTries; ++i) {
    int64_t result = internal::Perform(op, entry->kind);
    if (result != kWouldBlock) return result;
    result = AskPoll(entry, op);
    if (result != 0) return result;
  }
  return kWouldBlock;  // Others want to have a turn.
}

// What is marked meanwhile has its turn in the next one.
void IocpPoller::Flush(ReadyQueue* done) {
  const CompletionEntry* const last = last_dirty();
  while (Entry* entry = PopDirty()) {
    AskFor(entry, done);
    if (entry == last) return;
  }
}

// --- What it answers ---

// A request without a buffer has taken nothing.
void IocpPoller::AnnounceWithKernel(Entry* entry, Operation* op) {
  Announce(entry, op);
  op->message_flags = kWithKernel;
}

// The result of `op`, with which the kernel has finished by `slot`.
int64_t IocpPoller::Finished(Entry* entry, Operation* op, Slot* slot) {
  const uint32_t status = static_cast<uint32_t>(slot->Internal);
  constexpr uint32_t kEndOfFile = 0xC0000011;  // STATUS_END_OF_FILE
  int64_t error = -ErrnoOfStatus(status);
  if (IsSocket(entry)) error = internal::SocketError(op->handle, entry->kind, error);
  const int64_t size = static_cast<int64_t>(slot->InternalHigh);
  if (slot->is_poll) return error;
  switch (op->opcode) {
    case OpCode::kRecvLent:
      // Nothing was taken, so nobody else misses it.
      if (error == 0 || status == kEndOfFile || error == -EPIPE || error == -EMSGSIZE) {
        if (NoteOf(op)->wants_cancel || entry->retiring != nullptr) return -ECANCELED;
        AnnounceWithKernel(entry, op);
        return 0;
      }
      return error;
    case OpCode::kAccept:
      return error == 0 ? FinishAccept(op, static_cast<AcceptSlot*>(slot)) : error;
    case OpCode::kConnect:
      if (error == 0) {
        // Else it has no name, and cannot be shut down.
        ::setsockopt(Socket(op->handle), SOL_SOCKET, SO_UPDATE_CONNECT_CONTEXT, nullptr, 0);
      }
      return error;
    case OpCode::kRead:
      if (status == kEndOfFile || (error == -EPIPE && entry->kind == FileKind::kPipe)) return 0;
      if (error == -EMSGSIZE) return size;  // The message goes on.
      [[fallthrough]];
    default:
      return error == 0 ? size : error;
  }
}

int64_t IocpPoller::FinishAccept(Operation* op, AcceptSlot* slot) {
  const NativeHandle accepted = std::exchange(slot->accepted, kInvalidHandle);
  const SOCKET listener = Socket(op->handle);
  ::setsockopt(Socket(accepted), SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT,
               reinterpret_cast<const char*>(&listener), sizeof(listener));
  if (op->address != nullptr && SystemSocketApi()->GetPeerName(accepted, op->address) < 0) {
    op->address->length = 0;  // It has gone already.
  }
  // A number that was given out anew cannot be in use: whatever we know of it is about a
  // handle that was closed without our knowledge.
  Entry* stale = entries_.Find(accepted);
  if (stale != nullptr) Abandon(stale);
  return accepted;
}

void IocpPoller::OnPacket(Slot* slot, ReadyQueue* done) {
  Operation* op = slot->op;
  if (op == nullptr) return FreeSlot(slot);
  Entry* entry = EntryOf(op);
  Note* note = NoteOf(op);
  note->slot = nullptr;
  LeaveKernel(op);
  const bool goes_on = !note->wants_cancel && entry->retiring == nullptr;
  int64_t result = Finished(entry, op, slot);
  const bool was_poll = slot->is_poll;
  // Wine takes the error of a socket for itself, and tells it here alone.
  const int64_t reported =
      !was_poll ? 0
                : internal::SocketError(op->handle, entry->kind,
                                        -ErrnoOfStatus(static_cast<uint32_t>(
                                            static_cast<PollSlot*>(slot)->poll.socket.status)));
  const bool is_closed = static_cast<uint32_t>(slot->Internal) == 0x8000000A;
  FreeSlot(slot);

  // What went wrong when it was cancelled, or closed, is that.
  if (result < 0 && !goes_on) return End(op, -ECANCELED, done);
  if (IsWait(op)) {
    if (result == -ECANCELED && !is_closed) return MarkDirty(entry);
    return EndWaits(op, result, done);
  }
  if (was_poll) {
    if (!goes_on) return End(op, -ECANCELED, done);
    if (result >= 0) result = internal::Perform(op, entry->kind);
    if (result == kWouldBlock) result = reported < 0 ? reported : Attempt(entry, op);
  } else if (op->opcode == OpCode::kAccept && result == -ECONNRESET) {
    result = Ask(entry, op);
  } else if (result == -ECANCELED && !is_closed && op->opcode != OpCode::kConnect) {
    // Nobody has asked for that: the thread that it was asked on has ended.
    result = internal::IsOpen(op->handle) ? Ask(entry, op) : -EBADF;
  }
  if (result == kAsked) return;
  if (result == kWouldBlock) return MarkDirty(entry);
  End(op, result, done);
}

// Takes what has been finished, after so many milliseconds at the most. False if the port
// cannot be asked.
bool IocpPoller::Reap(DWORD milliseconds, ReadyQueue* done) {
  OVERLAPPED_ENTRY packets[kBatch];
  ULONG count = 0;
  do {
    if (!::GetQueuedCompletionStatusEx(port_, packets, kBatch, &count, milliseconds,
                                       /*fAlertable=*/FALSE)) {
      return ::GetLastError() == WAIT_TIMEOUT;
    }
    milliseconds = 0;
    for (ULONG i = 0; i < count; ++i) {
      if (packets[i].lpOverlapped == nullptr) {
        waker_->Acquire();
        was_woken_ = true;
      } else {
        OnPacket(static_cast<Slot*>(packets[i].lpOverlapped), done);
      }
    }
  } while (count == kBatch);
  return true;
}

// --- Ending ---

void IocpPoller::CancelInFlight(Entry* entry) {
  while (Operation* op = NextToCancel(entry)) {
    NoteOf(op)->has_cancel = true;
    // If it has ended already, its packet is under way.
    ::CancelIoEx(File(op->handle), NoteOf(op)->slot);
  }
  if (entry->retiring != nullptr) Reap(0, &ended_);
}

// Whether nobody wants anything of it any more.
bool IocpPoller::IsIdle(Entry* entry) const {
  if (!entry->queue[kRead].empty() || !entry->queue[kWrite].empty()) return false;
  if (entry->has_lent || entry->retiring != nullptr) return false;
  for (Operation* op = entry->waits.front(); op != nullptr; op = entry->waits.Next(op)) {
    if (!NoteOf(op)->wants_cancel) return false;
  }
  return true;
}

int64_t IocpPoller::Close(Entry* entry, NativeHandle handle, bool keeps) {
  FileKind kind = FileKind::kUnknown;
  if (entry != nullptr) {
    kind = std::exchange(entry->kind, FileKind::kUnknown);
    entry->is_watched = false;
    entry->was_kept = keeps && kind != FileKind::kUnknown;
  }
  if (kind == FileKind::kUnknown) {
    if (!internal::IsOpen(handle)) return -EBADF;
    kind = internal::KindOf(handle);
  }
  return keeps ? 0 : internal::Close(handle, kind);
}

// The number does not stand for the file any more that we knew by it. What the kernel was
// at has ended with that, and its packets come to orphans.
void IocpPoller::Abandon(Entry* entry) {
  ForEachInFlight(entry, [](Operation* op) {
    std::exchange(NoteOf(op)->slot, nullptr)->op = nullptr;
    LeaveKernel(op);
  });
  Disown(entry);
  entry->was_kept = entry->is_watched = false;
  entry->kind = FileKind::kUnknown;
}

absl::Status IocpPoller::Wait(TimePoint deadline, ReadyQueue* done) {
  Collect(done);
  bool may_sleep = done->empty() && deadline.nanoseconds() > 0;
  // Nothing can have come.
  if (port_ == nullptr && !may_sleep) return absl::OkStatus();
  if (port_ == nullptr) port_ = waker_->Open();
  if (port_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("iocp poller: CreateIoCompletionPort: error ",
                                                     static_cast<uint32_t>(::GetLastError())));
  }
  ReadyQueue finished;
  while (true) {
    Flush(&finished);
    if (was_woken_ || has_dirty() || !finished.empty() || !late_.empty() || !ended_.empty()) {
      may_sleep = false;
    }
    DWORD milliseconds = 0;
    if (may_sleep) {
      milliseconds = INFINITE;
      if (deadline != TimePoint::InfiniteFuture()) {
        // Rounded up: late, and never early.
        const int64_t left = deadline.nanoseconds() - SteadyClock::Read().nanoseconds();
        milliseconds =
            left <= 0 ? 0
                      : static_cast<DWORD>(std::min<int64_t>((left - 1) / 1'000'000 + 1, INT_MAX));
      }
    }
    if (!Reap(milliseconds, &finished)) {
      done->Splice(&finished);
      return absl::InternalError(absl::StrCat("iocp poller: GetQueuedCompletionStatusEx: error ",
                                              static_cast<uint32_t>(::GetLastError())));
    }
    if (!may_sleep || was_woken_ || !finished.empty() || !late_.empty() || !ended_.empty()) break;
    // What has come meant nothing yet, or the system's clock is coarse.
    if (deadline != TimePoint::InfiniteFuture() && SteadyClock::Read() >= deadline) break;
  }
  was_woken_ = false;
  done->Splice(&finished);
  done->Splice(&late_);
  Collect(done);
  return absl::OkStatus();
}

IocpPoller::~IocpPoller() {
  Drain();
  // Orphans: of handles that were closed, so the kernel is done with them.
  while (slots_ != nullptr) FreeSlot(slots_);
}

}  // namespace

std::unique_ptr<Poller> MakeIocpPoller() { return std::make_unique<IocpPoller>(); }

}  // namespace weft
