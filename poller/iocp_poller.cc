// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Completion by I/O completion ports. Compiled by MinGW-w64 and run under Wine 8; what is
// said of Windows here is from its documentation.
//
// What shapes it:
//   * An OVERLAPPED is the kernel's until its packet is taken from the port. So it lies in
//     a slot of the poller's, and not in the operation: a slot whose operation has gone is
//     an orphan, and freed by its packet. An operation with a buffer that the kernel may
//     write to waits for the packet all the same.
//   * What is done at once makes no packet (FILE_SKIP_COMPLETION_PORT_ON_SUCCESS), so
//     `Start()` is a system call, and most often the last of it.
//   * Two requests of one direction in flight may overtake each other. So only the first
//     of a queue is asked for, the next when it has ended.
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
//     in its name are still to come. So retiring cancels first, looks at once whether that
//     was all, which it is on Windows, and closes.
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
#include <winternl.h>
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
#include "weft/poller/errno_windows.h"
#include "weft/poller/handle_table.h"
#include "weft/poller/iocp_waker_windows.h"
#include "weft/poller/is_open.h"
#include "weft/poller/perform_windows.h"
#include "weft/poller/socket_api.h"

namespace weft {

namespace {

using internal::ErrnoOfStatus;
using internal::FileKind;
using internal::HandleTable;
using internal::IocpWaker;
using internal::kWouldBlock;
using internal::LastError;
using internal::LastErrorOf;

SOCKET Socket(NativeHandle handle) { return static_cast<SOCKET>(handle); }
HANDLE File(NativeHandle handle) { return reinterpret_cast<HANDLE>(handle); }

ULONG ClampSize(size_t size) { return static_cast<ULONG>(std::min<size_t>(size, INT_MAX)); }

// --- AFD: what a poll asks and answers ---

struct AfdPollHandle {
  HANDLE handle;
  ULONG events;
  LONG status;
};

struct AfdPoll {
  LARGE_INTEGER timeout;
  ULONG count;
  ULONG is_exclusive;
  AfdPollHandle handle;
};

constexpr ULONG kIoctlAfdPoll = 0x00012024;
constexpr ULONG kAfdReceive = 0x0001;
constexpr ULONG kAfdSend = 0x0004;
constexpr ULONG kAfdDisconnect = 0x0008;
constexpr ULONG kAfdAbort = 0x0010;
constexpr ULONG kAfdLocalClose = 0x0020;
constexpr ULONG kAfdAccept = 0x0080;
constexpr ULONG kAfdConnectFail = 0x0100;
constexpr ULONG kAfdReadable =
    kAfdReceive | kAfdDisconnect | kAfdAbort | kAfdLocalClose | kAfdAccept | kAfdConnectFail;
constexpr ULONG kAfdWritable = kAfdSend | kAfdAbort | kAfdLocalClose | kAfdConnectFail;

// --- What has to be asked for by name ---

using DeviceIoControl = LONG(NTAPI*)(HANDLE, HANDLE, void*, void*, void*, ULONG, void*, ULONG,
                                     void*, ULONG);
using SetInformation = LONG(NTAPI*)(HANDLE, void*, void*, ULONG, int);

template <class Fn>
Fn FromNtdll(const char* name) {
  return reinterpret_cast<Fn>(
      reinterpret_cast<void*>(::GetProcAddress(::GetModuleHandleW(L"ntdll.dll"), name)));
}

// Of the provider of a socket's kind; of all there are, as nobody installs others any more.
struct SocketExtensions {
  LPFN_ACCEPTEX accept = nullptr;
  LPFN_CONNECTEX connect = nullptr;
};

const SocketExtensions* Extensions(SOCKET socket) {
  static const SocketExtensions extensions = [socket] {
    SocketExtensions found;
    GUID accept = WSAID_ACCEPTEX, connect = WSAID_CONNECTEX;
    DWORD size;
    ::WSAIoctl(socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &accept, sizeof(accept), &found.accept,
               sizeof(found.accept), &size, nullptr, nullptr);
    ::WSAIoctl(socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &connect, sizeof(connect),
               &found.connect, sizeof(found.connect), &size, nullptr, nullptr);
    return found;
  }();
  return &extensions;
}

class IocpPoller final : public Poller {
 public:
  IocpPoller() = default;
  ~IocpPoller() override;

  std::string_view name() const override { return "iocp"; }
  StartResult Start(Operation* op) override;
  void Cancel(Operation* op) override;
  void CancelAll() override;
  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) override;
  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override;
  std::shared_ptr<Waker> MakeWaker() override { return waker_; }

 private:
  enum Direction : uint8_t { kRead = 0, kWrite = 1 };

  enum class Phase : uint8_t {
    kQueued,    // To be asked for, or waiting for those before it.
    kInFlight,  // The kernel's; it has a slot.
    kEnded,     // Its result is there, and waits for those before it: in a retirement.
  };

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
  struct Note {
    uint64_t sequence = 0;    // The order of starting.
    Slot* slot = nullptr;     // While it is in flight.
    uint32_t generation = 0;  // kRecvLent: of the entry, when it was announced.
    Phase phase = Phase::kQueued;
    bool is_unfetched = false;  // kRecvLent: announced, and not fetched.
    bool wants_cancel = false;
  };

  // What is known of a handle.
  struct Entry {
    NativeHandle handle = kInvalidHandle;
    List<Operation> queue[2];  // In the order of starting; the first may be in flight.
    List<Operation> waits;     // kWaitReadable, kWaitWritable.
    Operation* retiring = nullptr;
    Entry* next_dirty = nullptr;
    uint32_t generation = 1;
    FileKind kind = FileKind::kUnknown;  // Unknown: it has not been brought to the port.
    bool skips_port = false;             // What is done at once makes no packet.
    bool was_kept = false;               // Retired since, and kept open.
    bool is_watched = false;             // Its owner may close it without our knowledge.
    bool has_lent = false;               // One is announced and not fetched: others wait.
    bool is_dirty = false;               // There may be something to ask for in `Wait()`.
  };

  // Of a request: the kernel is at it. Else it is its result.
  static constexpr int64_t kInFlight = kWouldBlock + 1;
  static constexpr ULONG kBatch = 128;
  static constexpr int kTries = 4;

  static Note* NoteOf(Operation* op) {
    static_assert(sizeof(Note) <= Operation::kBackendBytes && alignof(Note) <= 8);
    return std::launder(reinterpret_cast<Note*>(op->backend));
  }
  static Direction DirectionOf(OpCode opcode);
  static bool IsWait(const Operation* op) {
    return op->opcode == OpCode::kWaitReadable || op->opcode == OpCode::kWaitWritable;
  }
  static bool IsSocket(const Entry* entry) {
    return entry->kind == FileKind::kStream || entry->kind == FileKind::kMessages;
  }

  // Starting.
  StartResult Done(Operation* op, int64_t result);
  StartResult Pending(Operation* op);
  StartResult Retire(Operation* op);
  int64_t Adopt(NativeHandle handle, Entry* entry);
  void Announce(Entry* entry, Operation* op);

  // Asking the kernel.
  template <class Kind>
  Kind* NewSlot(Operation* op);
  void FreeSlot(Slot* slot);
  int64_t Issue(Entry* entry, Operation* op);
  int64_t Submitted(Entry* entry, Operation* op, Slot* slot, bool is_ok, bool is_pending,
                    int64_t error);
  int64_t IssueReceive(Entry* entry, Operation* op);
  int64_t IssueFile(Entry* entry, Operation* op);
  int64_t IssueAccept(Entry* entry, Operation* op);
  int64_t IssueConnect(Entry* entry, Operation* op);
  int64_t IssuePoll(Entry* entry, Operation* op, bool to_write);
  int64_t Attempt(Entry* entry, Operation* op);
  void Pump(Entry* entry, Direction direction, ReadyQueue* done);
  void MarkDirty(Entry* entry);
  void Flush(ReadyQueue* done);

  // What it answers.
  int64_t Finished(Entry* entry, Operation* op, Slot* slot);
  int64_t FinishAccept(Operation* op, AcceptSlot* slot);
  void OnPacket(Slot* slot, ReadyQueue* done);
  bool Reap(DWORD milliseconds, ReadyQueue* done);
  void End(Entry* entry, Operation* op, int64_t result, ReadyQueue* done);
  void EndWaits(Entry* entry, Operation* op, int64_t result, ReadyQueue* done);
  void Finish(Operation* op, int64_t result, ReadyQueue* done);

  // Ending.
  void CancelPending(Entry* entry, Operation* op, ReadyQueue* done);
  bool HasInFlight(Entry* entry) const;
  bool IsIdle(Entry* entry) const;
  void EndAll(Entry* entry, ReadyQueue* done);
  void FinishRetirement(Entry* entry, ReadyQueue* done);
  void CloseEntry(Entry* entry, Operation* op);
  void Abandon(Entry* entry);

  HandleTable<Entry, /*kShift=*/2> entries_;
  const std::shared_ptr<IocpWaker> waker_ = std::make_shared<IocpWaker>();
  HANDLE port_ = nullptr;  // The waker's.
  Slot* slots_ = nullptr;  // All that the kernel has.
  Entry* dirty_ = nullptr;
  Entry** dirty_end_ = &dirty_;
  ReadyQueue late_;  // Writable ones, which are reported after readable ones.
  uint64_t next_sequence_ = 0;
  bool was_woken_ = false;
};

IocpPoller::Direction IocpPoller::DirectionOf(OpCode opcode) {
  switch (opcode) {
    case OpCode::kSend:
    case OpCode::kSendMsg:
    case OpCode::kConnect:
    case OpCode::kWrite:
    case OpCode::kFsync:
      return kWrite;
    default:
      return kRead;
  }
}

// --- Starting ---

StartResult IocpPoller::Start(Operation* op) {
  ABSL_HARDENING_ASSERT(op->state != Operation::State::kPending && !op->is_linked());
  new (op->backend) Note;
  NoteOf(op)->sequence = next_sequence_++;
  if (op->opcode == OpCode::kRetire) return Retire(op);
  // The two lowest bits of a handle are not Windows' own.
  if (ABSL_PREDICT_FALSE(op->handle <= 0 || (op->handle & 3) != 0)) return Done(op, -EBADF);
  int64_t error = 0;
  Entry* entry = entries_.Get(op->handle, &error);
  if (ABSL_PREDICT_FALSE(entry == nullptr)) return Done(op, error);
  if (ABSL_PREDICT_FALSE(entry->retiring != nullptr)) return Done(op, -EBADF);
  const bool goes_on = IsWait(op) && (op->flags & kWaitAgain) != 0;
  if (ABSL_PREDICT_FALSE(entry->kind == FileKind::kUnknown ||
                         (entry->is_watched && !goes_on && IsIdle(entry)))) {
    error = Adopt(op->handle, entry);
    if (error != 0) return Done(op, error);
  }
  if (IsWait(op)) {
    if (!IsSocket(entry)) return Done(op, -EPERM);
    entry->is_watched = true;
    entry->waits.PushBack(op);
    MarkDirty(entry);
    return Pending(op);
  }

  const Direction direction = DirectionOf(op->opcode);
  List<Operation>& queue = entry->queue[direction];
  if (queue.empty() && !(direction == kRead && entry->has_lent)) {
    const int64_t result = Issue(entry, op);
    if (result == kWouldBlock) {
      MarkDirty(entry);
    } else if (result != kInFlight) {
      return Done(op, result);
    }
  }
  queue.PushBack(op);
  return Pending(op);
}

StartResult IocpPoller::Done(Operation* op, int64_t result) {
  op->result = result;
  op->state = Operation::State::kDone;
  return StartResult::kDone;
}

StartResult IocpPoller::Pending(Operation* op) {
  op->state = Operation::State::kPending;
  ++pending_;
  return StartResult::kPending;
}

// Brings a handle to the port: 0, or a negated errno. One that is there already may have
// been closed since, if it was only watched, and its number stand for another.
int64_t IocpPoller::Adopt(NativeHandle handle, Entry* entry) {
  if (port_ == nullptr) port_ = waker_->Open();
  if (port_ == nullptr) return LastError();
  if (!internal::IsOpen(handle)) return -EBADF;
  const FileKind kind = internal::KindOf(handle);
  if (kind == FileKind::kUnknown) return -EPERM;
  if (::CreateIoCompletionPort(File(handle), port_, 0, 0) == nullptr) {
    if (::GetLastError() != ERROR_INVALID_PARAMETER) return LastError();
    // It has a port already, or was not opened for overlapped I/O. The first may be ours,
    // if the handle was kept open, or that of a loop that it belonged to before.
    struct {
      HANDLE port;
      void* key;
    } completion = {port_, nullptr};
    constexpr int kReplaceCompletion = 61;  // FileReplaceCompletionInformation.
    static const auto set = FromNtdll<SetInformation>("NtSetInformationFile");
    IO_STATUS_BLOCK status = {};
    const LONG result =
        set(File(handle), &status, &completion, sizeof(completion), kReplaceCompletion);
    const bool was_ours = entry->was_kept || entry->is_watched;
    if (result < 0 && !was_ours) return -EINVAL;
  }
  entry->skips_port = ::SetFileCompletionNotificationModes(
      File(handle), FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE);
  entry->handle = handle;
  entry->kind = kind;
  entry->was_kept = entry->is_watched = false;
  return 0;
}

// It is `op`'s turn to fetch; until it has, or gives up, others wait.
void IocpPoller::Announce(Entry* entry, Operation* op) {
  entry->has_lent = true;
  NoteOf(op)->is_unfetched = true;
  NoteOf(op)->generation = entry->generation;
}

StartResult IocpPoller::FetchLent(Operation* op, SlabPool* pool, Slab* slab) {
  slab->Reset();
  ABSL_HARDENING_ASSERT(op->state == Operation::State::kDone && op->opcode == OpCode::kRecvLent);
  Note* note = NoteOf(op);
  if (!std::exchange(note->is_unfetched, false)) return StartResult::kDone;  // Has its error.
  Entry* entry = entries_.Find(op->handle);
  if (entry->generation != note->generation) return Done(op, -ECANCELED);  // Retired since.
  entry->has_lent = false;
  *slab = pool->Take();
  int64_t result = -ENOMEM;
  if (*slab) result = internal::Receive(op->handle, entry->kind, slab->data(), slab->size());
  if (result <= 0) slab->Reset();
  if (result == kWouldBlock) {
    // Before those that wait behind it.
    new (op->backend) Note;
    NoteOf(op)->sequence = next_sequence_++;
    entry->queue[kRead].PushFront(op);
    MarkDirty(entry);
    return Pending(op);
  }
  Done(op, result);
  Pump(entry, kRead, &ended_);
  return StartResult::kDone;
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

// Asks for `op`, which is the first of its queue. `kWouldBlock`: to be asked once more, in
// `Wait()`.
int64_t IocpPoller::Issue(Entry* entry, Operation* op) {
  switch (op->opcode) {
    case OpCode::kRecv:
      // Windows peeks only in calls that do not wait.
      if (entry->kind == FileKind::kStream && op->flags == 0) return IssueReceive(entry, op);
      return Attempt(entry, op);
    case OpCode::kRecvLent:
      if (entry->kind == FileKind::kPipe) return IssueFile(entry, op);
      if (entry->kind != FileKind::kStream) return -EOPNOTSUPP;
      return IssueReceive(entry, op);
    case OpCode::kRead:
      if (entry->kind == FileKind::kStream) return IssueReceive(entry, op);
      if (IsSocket(entry)) return Attempt(entry, op);
      return IssueFile(entry, op);
    case OpCode::kWrite:
      if (IsSocket(entry)) return Attempt(entry, op);
      return IssueFile(entry, op);
    case OpCode::kSend:
    case OpCode::kSendMsg:
    case OpCode::kRecvMsg:
      return Attempt(entry, op);
    case OpCode::kAccept:
      if (entry->kind != FileKind::kStream) return IsSocket(entry) ? -EOPNOTSUPP : -ENOTSOCK;
      return IssueAccept(entry, op);
    case OpCode::kConnect:
      if (!IsSocket(entry)) return -ENOTSOCK;
      return IssueConnect(entry, op);
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
  Note* note = NoteOf(op);
  if (is_pending || (is_ok && !entry->skips_port)) {
    note->slot = slot;
    note->phase = Phase::kInFlight;
    return kInFlight;
  }
  const int64_t result = is_ok ? Finished(entry, op, slot) : error;
  FreeSlot(slot);
  // Of a request that may wait it says that there are too many (WSARecv()).
  return result == kWouldBlock ? -ENOBUFS : result;
}

int64_t IocpPoller::IssueReceive(Entry* entry, Operation* op) {
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

int64_t IocpPoller::IssueFile(Entry* entry, Operation* op) {
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
      if (is_lent) Announce(entry, op);
    }
  }
  return Submitted(entry, op, slot, is_ok, is_pending, error);
}

int64_t IocpPoller::IssueAccept(Entry* entry, Operation* op) {
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
    const auto accept = Extensions(Socket(op->handle))->accept;
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

int64_t IocpPoller::IssueConnect(Entry* entry, Operation* op) {
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
  const auto connect = Extensions(Socket(op->handle))->connect;
  const bool is_ok =
      connect != nullptr && connect(Socket(op->handle), to, length, nullptr, 0, nullptr, slot);
  const bool is_pending = !is_ok && ::WSAGetLastError() == WSA_IO_PENDING;
  const int64_t error = is_ok || is_pending ? 0 : LastErrorOf(op->handle, entry->kind);
  return Submitted(entry, op, slot, is_ok, is_pending, error);
}

// Waits until the socket is readable, or writable: 0 if it is.
int64_t IocpPoller::IssuePoll(Entry* entry, Operation* op, bool to_write) {
  PollSlot* slot = NewSlot<PollSlot>(op);
  if (slot == nullptr) return -ENOMEM;
  slot->is_poll = true;
  slot->poll = {};
  slot->poll.timeout.QuadPart = INT64_MAX;
  slot->poll.count = 1;
  slot->poll.handle = {File(op->handle), to_write ? kAfdWritable : kAfdReadable, 0};
  static const auto control = FromNtdll<DeviceIoControl>("NtDeviceIoControlFile");
  constexpr LONG kStatusPending = 0x103;
  // The first two members of an OVERLAPPED are an IO_STATUS_BLOCK; what is passed on to the
  // port is what CreateIoCompletionPort() has it be, the OVERLAPPED.
  OVERLAPPED* overlapped = slot;
  const LONG status =
      control(File(op->handle), nullptr, nullptr, overlapped, overlapped, kIoctlAfdPoll,
              &slot->poll, sizeof(slot->poll), &slot->poll, sizeof(slot->poll));
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
    result = IssuePoll(entry, op, DirectionOf(op->opcode) == kWrite);
    if (result != 0) return result;
  }
  return kWouldBlock;  // Others want to have a turn.
}

// Asks for what is first, and for what comes after it if that is done at once.
void IocpPoller::Pump(Entry* entry, Direction direction, ReadyQueue* done) {
  while (Operation* op = entry->queue[direction].front()) {
    if (NoteOf(op)->phase != Phase::kQueued || entry->retiring != nullptr) return;
    if (direction == kRead && entry->has_lent) return;
    const int64_t result = Issue(entry, op);
    if (result == kInFlight) return;
    if (result == kWouldBlock) return MarkDirty(entry);
    op->Unlink();
    Finish(op, result, done);
  }
}

void IocpPoller::MarkDirty(Entry* entry) {
  if (entry->is_dirty) return;
  entry->is_dirty = true;
  entry->next_dirty = nullptr;
  *dirty_end_ = entry;
  dirty_end_ = &entry->next_dirty;
}

void IocpPoller::Flush(ReadyQueue* done) {
  Entry* entry = std::exchange(dirty_, nullptr);
  dirty_end_ = &dirty_;
  while (entry != nullptr) {
    Entry* next = entry->next_dirty;
    entry->is_dirty = false;
    Pump(entry, kRead, done);
    Pump(entry, kWrite, done);
    // asyncio reports the reader of a descriptor before its writer. One of each is asked
    // for, and says it for all: each by itself would be answered in the kernel's order.
    for (const OpCode opcode : {OpCode::kWaitReadable, OpCode::kWaitWritable}) {
      bool is_asked = entry->retiring != nullptr;
      Operation* first = nullptr;
      for (Operation* op = entry->waits.front(); op != nullptr; op = entry->waits.Next(op)) {
        if (op->opcode != opcode) continue;
        const Note* note = NoteOf(op);
        if (note->phase == Phase::kInFlight && !note->wants_cancel) is_asked = true;
        if (note->phase == Phase::kQueued && first == nullptr) first = op;
      }
      if (is_asked || first == nullptr) continue;
      const bool to_write = opcode == OpCode::kWaitWritable;
      const int64_t result = IssuePoll(entry, first, to_write);
      if (result != kInFlight) EndWaits(entry, first, result, to_write ? &late_ : done);
    }
    entry = next;
  }
}

// --- What it answers ---

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
        Announce(entry, op);
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
  Entry* entry = entries_.Find(op->handle);
  Note* note = NoteOf(op);
  note->slot = nullptr;
  note->phase = Phase::kQueued;
  const bool goes_on = !note->wants_cancel && entry->retiring == nullptr;
  int64_t result = Finished(entry, op, slot);
  const bool was_poll = slot->is_poll;
  // Wine takes the error of a socket for itself, and tells it here alone.
  const int64_t reported =
      !was_poll ? 0
                : internal::SocketError(op->handle, entry->kind,
                                        -ErrnoOfStatus(static_cast<uint32_t>(
                                            static_cast<PollSlot*>(slot)->poll.handle.status)));
  const bool is_closed = static_cast<uint32_t>(slot->Internal) == 0x8000000A;
  FreeSlot(slot);

  // What went wrong when it was cancelled, or closed, is that.
  if (result < 0 && !goes_on) return End(entry, op, -ECANCELED, done);
  if (IsWait(op)) {
    if (result == -ECANCELED && !is_closed) return MarkDirty(entry);
    return EndWaits(entry, op, result, op->opcode == OpCode::kWaitWritable ? &late_ : done);
  }
  if (was_poll) {
    if (!goes_on) return End(entry, op, -ECANCELED, done);
    if (result >= 0) result = internal::Perform(op, entry->kind);
    if (result == kWouldBlock) result = reported < 0 ? reported : Attempt(entry, op);
  } else if (op->opcode == OpCode::kAccept && result == -ECONNRESET) {
    result = Issue(entry, op);
  } else if (result == -ECANCELED && !is_closed && op->opcode != OpCode::kConnect) {
    // Nobody has asked for that: the thread that it was asked on has ended.
    result = internal::IsOpen(op->handle) ? Issue(entry, op) : -EBADF;
  }
  if (result == kInFlight) return;
  if (result == kWouldBlock) return MarkDirty(entry);
  End(entry, op, result, done);
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

// Ends an operation that is not in flight; what waits behind it comes next.
void IocpPoller::End(Entry* entry, Operation* op, int64_t result, ReadyQueue* done) {
  if (entry->retiring != nullptr) {
    op->result = result;
    NoteOf(op)->phase = Phase::kEnded;
    return FinishRetirement(entry, done);
  }
  op->Unlink();
  Finish(op, result, done);
  if (!IsWait(op)) return Pump(entry, DirectionOf(op->opcode), done);
  if (!entry->waits.empty()) MarkDirty(entry);  // One may have been asked for them all.
}

// Ends a wait, and those that wait for the same, in their order.
void IocpPoller::EndWaits(Entry* entry, Operation* op, int64_t result, ReadyQueue* done) {
  const OpCode opcode = op->opcode;
  End(entry, op, result, done);
  if (entry->retiring != nullptr || result < 0) return;
  for (Operation* next = entry->waits.front(); next != nullptr;) {
    Operation* each = std::exchange(next, entry->waits.Next(next));
    if (each->opcode == opcode && NoteOf(each)->phase == Phase::kQueued) {
      End(entry, each, 0, done);
    }
  }
}

void IocpPoller::Finish(Operation* op, int64_t result, ReadyQueue* done) {
  op->result = result;
  op->state = Operation::State::kDone;
  --pending_;
  done->PushBack(op);
}

// --- Ending ---

void IocpPoller::Cancel(Operation* op) {
  if (op->state == Operation::State::kPending) {
    if (op->opcode == OpCode::kRetire) return;
    return CancelPending(entries_.Find(op->handle), op, &ended_);
  }
  if (op->opcode != OpCode::kRecvLent || op->state != Operation::State::kDone) return;
  Note* note = NoteOf(op);
  if (!std::exchange(note->is_unfetched, false)) return;
  op->result = -ECANCELED;
  Entry* entry = entries_.Find(op->handle);
  if (entry->generation != note->generation) return;
  entry->has_lent = false;
  Pump(entry, kRead, &ended_);
}

void IocpPoller::CancelPending(Entry* entry, Operation* op, ReadyQueue* done) {
  Note* note = NoteOf(op);
  switch (note->phase) {
    case Phase::kQueued:
      return End(entry, op, -ECANCELED, done);
    case Phase::kInFlight:
      // If it has ended already, its packet is under way.
      if (!std::exchange(note->wants_cancel, true)) ::CancelIoEx(File(op->handle), note->slot);
      return;
    case Phase::kEnded:
      return;
  }
}

void IocpPoller::CancelAll() {
  entries_.ForEach([this](NativeHandle, Entry* entry) {
    if (entry->retiring != nullptr) return;
    for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
      for (Operation* op = list->front(); op != nullptr;) {
        Operation* next = list->Next(op);
        if (NoteOf(op)->phase == Phase::kQueued) {
          op->Unlink();  // And none of those behind it comes next.
          Finish(op, -ECANCELED, &ended_);
        } else {
          CancelPending(entry, op, &ended_);
        }
        op = next;
      }
    }
  });
}

bool IocpPoller::HasInFlight(Entry* entry) const {
  for (Direction direction : {kRead, kWrite}) {
    Operation* op = entry->queue[direction].front();
    if (op != nullptr && NoteOf(op)->phase == Phase::kInFlight) return true;
  }
  for (Operation* op = entry->waits.front(); op != nullptr; op = entry->waits.Next(op)) {
    if (NoteOf(op)->phase == Phase::kInFlight) return true;
  }
  return false;
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

StartResult IocpPoller::Retire(Operation* op) {
  const bool is_number = op->handle > 0 && (op->handle & 3) == 0;
  Entry* entry = is_number ? entries_.Find(op->handle) : nullptr;
  if (entry == nullptr || entry->retiring != nullptr) {
    op->result = -EBADF;
    if (is_number && entry == nullptr && internal::IsOpen(op->handle)) {
      const bool is_kept = (op->flags & kKeepOpen) != 0;
      op->result = is_kept ? 0 : internal::Close(op->handle, internal::KindOf(op->handle));
    }
    op->state = Operation::State::kDone;
    ended_.PushBack(op);
    return StartResult::kPending;
  }
  // What was announced and not fetched is still the kernel's.
  ++entry->generation;
  entry->has_lent = false;
  if (HasInFlight(entry)) {
    entry->retiring = op;
    Pending(op);
    for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
      for (Operation* each = list->front(); each != nullptr; each = list->Next(each)) {
        if (NoteOf(each)->phase == Phase::kInFlight) CancelPending(entry, each, &ended_);
      }
    }
    // Somebody may want the port at once, or wait for the end of the stream.
    Reap(0, &ended_);
    return StartResult::kPending;
  }
  EndAll(entry, &ended_);
  CloseEntry(entry, op);
  op->state = Operation::State::kDone;
  ended_.PushBack(op);
  return StartResult::kPending;
}

// Ends what is not in flight, oldest first. REQUIRES: nothing is.
void IocpPoller::EndAll(Entry* entry, ReadyQueue* done) {
  List<Operation>* const lists[] = {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits};
  while (true) {
    Operation* first = nullptr;
    for (List<Operation>* list : lists) {
      Operation* op = list->front();
      if (op == nullptr) continue;
      if (first == nullptr || NoteOf(op)->sequence < NoteOf(first)->sequence) first = op;
    }
    if (first == nullptr) return;
    first->Unlink();
    Finish(first, NoteOf(first)->phase == Phase::kEnded ? first->result : -ECANCELED, done);
  }
}

void IocpPoller::FinishRetirement(Entry* entry, ReadyQueue* done) {
  if (HasInFlight(entry)) return;
  Operation* op = std::exchange(entry->retiring, nullptr);
  EndAll(entry, done);
  CloseEntry(entry, op);
  Finish(op, op->result, done);
}

// The handle is nobody's any more; `op->result` says what close said.
void IocpPoller::CloseEntry(Entry* entry, Operation* op) {
  const FileKind kind = std::exchange(entry->kind, FileKind::kUnknown);
  entry->is_watched = false;
  entry->was_kept = (op->flags & kKeepOpen) != 0 && kind != FileKind::kUnknown;
  if ((op->flags & kKeepOpen) != 0) {
    op->result = 0;
  } else if (kind != FileKind::kUnknown) {
    op->result = internal::Close(op->handle, kind);
  } else {
    op->result = internal::IsOpen(op->handle)
                     ? internal::Close(op->handle, internal::KindOf(op->handle))
                     : -EBADF;
  }
}

// The number does not stand for the file any more that we knew by it. What the kernel was
// at has ended with that, and its packets come to orphans.
void IocpPoller::Abandon(Entry* entry) {
  for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
    while (Operation* op = list->PopFront()) {
      if (Slot* slot = std::exchange(NoteOf(op)->slot, nullptr)) slot->op = nullptr;
      Finish(op, -EBADF, &ended_);
    }
  }
  ++entry->generation;
  entry->has_lent = entry->was_kept = entry->is_watched = false;
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
    if (was_woken_ || dirty_ != nullptr || !finished.empty() || !late_.empty() || !ended_.empty()) {
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
  // The kernel has to let go of what it has; nobody is told.
  CancelAll();
  ReadyQueue done;
  while (pending_ > 0 && Wait(TimePoint::InfiniteFuture(), &done).ok()) {
  }
  Collect(&done);
  done.Clear();
  // Orphans: of handles that were closed, so the kernel is done with them.
  while (slots_ != nullptr) FreeSlot(slots_);
}

}  // namespace

std::unique_ptr<Poller> MakeIocpPoller() { return std::make_unique<IocpPoller>(); }

}  // namespace weft
