// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Completion by io_uring(7). Who is first, and what happens at the end, is in
// `completion_poller`; here is when the kernel is asked, and what its answers mean. The
// rings themselves are in `uring_linux`, what a request says in `uring_request_linux`, the
// buffers that are lent in `uring_buffers_linux`, and what came in them and was not fetched
// in `uring_bank_linux`.
//
// What shapes it:
//   * `Start()` only puts an operation in its place in a queue of its handle; what is
//     first in a queue becomes a submission in `Wait()`, all in one system call, and
//     the same call waits. So an operation that is cancelled before has cost the
//     kernel nothing, and the loop may be made on another thread than it runs on.
//   * The operation itself is a request's name (`user_data`), so it has to be there until
//     the kernel is done; nothing refers to an operation that was given back.
//   * With IORING_SETUP_DEFER_TASKRUN the kernel does nothing but in our call. So what
//     nobody waits for at that time is not taken: a listener on which nobody accepts
//     is taken back in the same call.
//   * Receiving is asked for once at a time, with a buffer of the kernel's choice. A
//     multishot receive was measured to be no cheaper (within 3 % at 64 connections,
//     dearer at 1,000, as it needs more buffers than the cache holds), and it goes on
//     reading when nobody asks it to: so a peer could fill our memory.
//   * A send whose end nobody waits for ("quiet") makes no completion if all went
//     well. The kernel tries it while it takes the submission, and may not put it off
//     (MSG_DONTWAIT), and less than all counts as an error (MSG_WAITALL): so when the
//     call returns, those without a completion are done. Else each batch of answers
//     would end the sleep in which the next requests are awaited. What they hold is
//     given back only when the sleep ends, so a sleep is not begun with much of it.
//   * A close while a receive is in flight sends no FIN, as the request holds the
//     file. So what is in flight is cancelled first; for a listener in `Start()`, as
//     somebody may want its port at once.
//   * A handle that goes back to its owner (`kKeepOpen`) may have bytes here that the
//     kernel handed over before it heard of that. An operation that has announced them,
//     or was cancelled too late, may still fetch them; else they are kept for the next
//     operation on the same file. Who receives by himself misses those.
//   * A request belongs to the thread that submitted it, and ends with -ECANCELED
//     when that thread does. Nobody has asked for that, so it is submitted again. If a
//     loop goes on on another thread, the ring stays behind and a new one is made:
//     that is why the ring is not registered with its thread (which would save some
//     nanoseconds a call), as such a ring cannot be closed from elsewhere.
//   * What workers of the kernel are at (a file, at an offset) does not end with the ring:
//     its end is waited for (`uring_end_linux`). So it is if a listener accepts there: the
//     kernel wakes one request for each connection, and if that is one of a ring that is
//     being closed, but is not yet, the next one never hears of it.

#include "weft/poller/io_uring_poller.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/macros.h"
#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "weft/core/block_pool.h"
#include "weft/core/clock.h"
#include "weft/core/intrusive_list.h"
#include "weft/poller/completion_poller.h"
#include "weft/poller/direction.h"
#include "weft/poller/entry_queue.h"
#include "weft/poller/eventfd_waker_linux.h"
#include "weft/poller/file_identity_linux.h"
#include "weft/poller/perform_posix.h"
#include "weft/poller/shortage_posix.h"
#include "weft/poller/standard_streams_posix.h"
#include "weft/poller/uring_bank_linux.h"
#include "weft/poller/uring_end_linux.h"
#include "weft/poller/uring_listener_linux.h"
#include "weft/poller/uring_outer_linux.h"
#include "weft/poller/uring_request_linux.h"
#include "weft/poller/would_block.h"

namespace weft {

namespace {

using internal::CompletionEntry;
using internal::CompletionNote;
using internal::CompletionPoller;
using internal::EntryQueue;
using internal::EventfdWaker;
using internal::IoUringPollerOptions;
using internal::kAsked;
using internal::kRead;
using internal::kWouldBlock;
using internal::kWrite;
using internal::Uring;
using internal::UringBank;
using internal::UringBuffers;
using internal::UringEnd;
using internal::UringOuter;

namespace uring = internal::uring;

absl::Status SystemError(const char* call, int error) {
  const std::string message = absl::StrCat("io_uring poller: ", call, ": ", std::strerror(error));
  return internal::IsShortage(error) ? absl::ResourceExhaustedError(message)
                                     : absl::InternalError(message);
}

void CloseNow(int64_t handle) { internal::Close(static_cast<NativeHandle>(handle)); }

enum class Kind : uint8_t { kUnknown, kStream, kMessages };

// What is kept in an operation.
struct Note : CompletionNote {
  uint32_t place = 0;         // Its place among all that were filled in.
  msghdr* header = nullptr;   // kSendMsg, kRecvMsg: while it is in flight.
  bool was_tried = false;     // The kernel would have had to wait.
  bool is_polling = false;    // In flight is not itself, but the wait for readiness.
  bool is_performed = false;  // Is to be done by a system call of ours.
  bool is_quiet = false;      // Done when the call returns without a word about it.
};

struct Entry;
using Listener = internal::UringListener<Entry>;

// What is known of a handle.
struct Entry : CompletionEntry {
  bool holds_lent() const { return !bank.empty(); }

  UringBank bank;
  bool was_kept = false;   // Retired since, and kept open: `bank` may be another file's.
  bool maybe_more = true;  // For all we know there is something to receive.
  Kind kind = Kind::kUnknown;
  uint64_t file = 0;  // Which one `waits` wait for, or the bank was kept of.
  std::unique_ptr<Listener> listener;
  Entry* next_starved = nullptr;
};

class IoUringPoller final : public CompletionPoller<Entry, Note> {
 public:
  explicit IoUringPoller(const IoUringPollerOptions& options)
      : options_(options), buffers_(options.buffers) {}
  ~IoUringPoller() override;

  std::string_view name() const override { return "io_uring"; }
  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override;
  std::shared_ptr<Waker> MakeWaker() override { return waker_; }
  NativeHandle BackendFd() override;
  void ArmBackend(TimePoint deadline) override;

 private:
  // How much of what was sent may be kept over a sleep: as much as a hundred large
  // answers, so that a call more for them all does not count.
  static constexpr size_t kMostQuietBytes = 1024 * 1024;
  static constexpr uint64_t kTagMask = 7;
  static constexpr uint64_t kListenerTag = 1;
  static constexpr uint64_t kWakerTag = 2;
  static constexpr uint64_t kIgnoreTag = 3;

  static bool IsAccepting(Entry* entry);

  // Starting.
  int64_t Begin(Entry* entry, Operation* op) override;
  int64_t BeginWait(Entry* entry, Operation* op);
  int64_t Fetch(Entry* entry, Operation* op, SlabPool* pool, Slab* slab) override;
  int64_t TakeAccepted(Entry* entry, Operation* op);
  int64_t TakeBanked(Entry* entry, Operation* op);
  void ServeFromBank(Entry* entry);
  void FreeBank(Entry* entry);
  void LookWhoseBank(Entry* entry);
  void FillPeer(Operation* op);
  bool MustPerform(const Operation* op) const;
  static int64_t PerformNow(Operation* op);

  // Submitting.
  uring::Sqe* NextSqe();
  void Flush();
  void FlushEntry(Entry* entry);
  int64_t Ask(Entry* entry, Operation* op) override;
  int64_t AskListener(Entry* entry);
  int64_t AskPoll(Operation* op);
  int64_t AskPerformed(Operation* op);
  int64_t Asked(Operation* op, uring::Sqe* sqe);
  static bool NewHeader(Operation* op);
  void Spare(Entry* entry, Operation* op, uring::Sqe* sqe);
  static bool KeepsMessages(Entry* entry);
  bool SubmitCancel(uint64_t user_data);
  bool SubmitCancelOf(Operation* op);
  bool SubmitCancelOf(Listener* listener);
  void FlushNow();

  // What the kernel answers.
  void Reap(ReadyQueue* done);
  void OnListener(Listener* listener, int32_t result, uint32_t flags, ReadyQueue* done);
  void OnOperation(Operation* op, int32_t result, uint32_t flags, ReadyQueue* done);
  int64_t OnLent(Entry* entry, Operation* op, int32_t result, uint32_t flags);
  void Again(Operation* op);
  static void FreeHeader(Operation* op);
  void FinishQuiet(ReadyQueue* done);

  // Ending.
  void CancelInFlight(Entry* entry) override;
  void TryWrites(Entry* entry) override;
  int64_t Close(Entry* entry, NativeHandle handle, bool keeps) override;
  void Abandon(Entry* entry);

  // The ring.
  int Open();
  int OpenToSleep();
  int OpenBuffers();
  int Enter(const Uring::Wait& wait);
  int MoveHere();
  void AskAnew(Operation* op);

  const IoUringPollerOptions options_;
  Uring ring_;
  UringBuffers buffers_;
  std::shared_ptr<EventfdWaker> waker_ = std::make_shared<EventfdWaker>();
  EntryQueue<Entry, &Entry::next_starved> starved_;  // They found no buffer.
  List<Operation> orphans_;  // In flight on a file that its number stands for no more.
  std::vector<std::unique_ptr<Listener>> orphan_listeners_;
  std::vector<Operation*> quiet_;  // Submitted, and to be done when the call returns.
  size_t quiet_bytes_ = 0;         // Of those that were filled in since the last `Reap()`.
  uint32_t submissions_ = 0;       // So many entries were filled in.
  bool uses_buffers_ = false;
  bool has_orphans_to_cancel_ = false;
  bool watches_waker_ = false;
  bool was_woken_ = false;
  bool is_full_ = false;       // The kernel takes no more until it was reaped.
  bool has_no_signal_ = true;  // RWF_NOSIGNAL, as far as we know.
  int failed_ = 0;             // What has befallen the ring outside of `Wait()`.
  UringEnd end_;               // Held when a worker was asked.
  UringOuter outer_;           // For a foreign loop.
};

// --- Starting ---

int64_t IoUringPoller::Begin(Entry* entry, Operation* op) {
  switch (op->opcode) {
    case OpCode::kSend:
    case OpCode::kSendMsg:
    case OpCode::kFsync:
      return kWouldBlock;
    case OpCode::kWaitReadable:
    case OpCode::kWaitWritable:
      return BeginWait(entry, op);
    case OpCode::kAccept:
      return TakeAccepted(entry, op);
    case OpCode::kConnect: {
      // Only the Internet's takes time; of a full Unix backlog no readiness tells.
      const auto* address = reinterpret_cast<const sockaddr*>(op->address->bytes);
      return address->sa_family == AF_UNIX ? internal::Perform(op) : kWouldBlock;
    }
    case OpCode::kWrite: {
      if (!MustPerform(op)) return kWouldBlock;
      const int64_t result = internal::Perform(op);
      if (result == kWouldBlock) NoteOf(op)->was_tried = NoteOf(op)->is_performed = true;
      return result;
    }
    default:
      return ABSL_PREDICT_TRUE(entry->bank.empty()) ? kWouldBlock : TakeBanked(entry, op);
  }
}

int64_t IoUringPoller::BeginWait(Entry* entry, Operation* op) {
  if (ABSL_PREDICT_FALSE(entry->was_kept)) LookWhoseBank(entry);
  if ((op->flags & kWaitAgain) == 0) {
    uint64_t file = 0;
    if (const int error = internal::CheckWatchable(op->handle, &file)) return error;
    // Those that wait already may wait for a file that was closed without our knowledge.
    if (!entry->waits.empty() && entry->file != file) Abandon(entry);
    entry->file = file;
  }
  // What the kernel has handed over is not there any more for it.
  const bool has_something =
      !entry->bank.empty() || (entry->listener != nullptr && entry->listener->has_accepted());
  return op->opcode == OpCode::kWaitReadable && has_something ? 0 : kWouldBlock;
}

// A connection that has come already; `kWouldBlock` if there is none.
int64_t IoUringPoller::TakeAccepted(Entry* entry, Operation* op) {
  Listener* listener = entry->listener.get();
  if (listener == nullptr || !listener->has_accepted()) return kWouldBlock;
  op->result = listener->Take();
  FillPeer(op);
  return op->result;
}

// Serves `op` from what has come already; `kWouldBlock` if there is nothing, or nothing
// for such a one. REQUIRES: nobody is before it.
int64_t IoUringPoller::TakeBanked(Entry* entry, Operation* op) {
  if (entry->was_kept) LookWhoseBank(entry);
  if (entry->bank.empty() || entry->has_lent) return kWouldBlock;
  if (op->opcode == OpCode::kRecvLent) {
    Announce(entry, op);
    return 0;
  }
  const int64_t result = entry->bank.CopyTo(op, &buffers_);
  if (entry->bank.empty()) entry->was_kept = false;
  return result;
}

// What one has left behind who gave up is for those who came after it.
void IoUringPoller::ServeFromBank(Entry* entry) {
  while (!entry->bank.empty() && !entry->has_lent) {
    Operation* op = entry->queue[kRead].front();
    if (op == nullptr || NoteOf(op)->phase != Phase::kQueued) return;
    if (op->opcode == OpCode::kAccept) return;
    const int64_t result = TakeBanked(entry, op);
    if (result == kWouldBlock) return;
    End(op, result, &ended_);
  }
}

void IoUringPoller::FreeBank(Entry* entry) {
  entry->bank.Free(&buffers_);
  entry->was_kept = false;
}

// The first who comes after the handle was kept open. Nobody else will fetch what is there.
void IoUringPoller::LookWhoseBank(Entry* entry) {
  entry->was_kept = false;
  if (entry->has_lent) ForgetLent(entry);
  if (internal::FileOf(entry->handle) != entry->file) FreeBank(entry);
}

// A request that accepts again and again has no place for the peer's address.
void IoUringPoller::FillPeer(Operation* op) {
  if (op->address == nullptr) return;
  socklen_t size = SockAddr::kCapacity;
  const int fd = static_cast<int>(op->result);
  const int error = ::getpeername(fd, reinterpret_cast<sockaddr*>(op->address->bytes), &size);
  op->address->length = error == 0 ? size : 0;  // It has gone already.
}

// Of pipes: without RWF_NOSIGNAL the kernel would send SIGPIPE.
bool IoUringPoller::MustPerform(const Operation* op) const {
  return op->opcode == OpCode::kWrite && op->offset < 0 && !has_no_signal_;
}

// One that was begun before is asked once more how it goes.
int64_t IoUringPoller::PerformNow(Operation* op) {
  const int64_t result = internal::Perform(op);
  if (op->opcode != OpCode::kConnect) return result;
  return result == -EALREADY ? kWouldBlock : result == -EISCONN ? 0 : result;
}

int64_t IoUringPoller::Fetch(Entry* entry, Operation*, SlabPool*, Slab* slab) {
  entry->was_kept = false;
  return entry->bank.MoveTo(slab, &buffers_);
}

// --- Submitting ---

// Room for one more submission; null if the kernel takes none.
uring::Sqe* IoUringPoller::NextSqe() {
  uring::Sqe* sqe = ring_.NextSqe();
  if (ABSL_PREDICT_FALSE(sqe == nullptr)) {
    if (const int error = Enter(Uring::Wait())) failed_ = error;
    sqe = ring_.NextSqe();
    if (sqe == nullptr) {
      is_full_ = true;
      return nullptr;
    }
  }
  ++submissions_;
  return sqe;
}

// Makes submissions of all that can be.
void IoUringPoller::Flush() {
  is_full_ = false;
  if (uses_buffers_) buffers_.TopUp();
  if (ABSL_PREDICT_FALSE(has_orphans_to_cancel_)) {
    has_orphans_to_cancel_ = false;
    for (Operation* op = orphans_.front(); op != nullptr; op = orphans_.Next(op)) {
      if (!SubmitCancelOf(op)) has_orphans_to_cancel_ = true;
    }
    for (auto& listener : orphan_listeners_) {
      if (!SubmitCancelOf(listener.get())) has_orphans_to_cancel_ = true;
    }
  }
  // No more than there are buffers for; the others have their turn next.
  for (uint32_t left = buffers_.provided(); left > 0 && !starved_.empty(); --left) {
    MarkDirty(starved_.Pop());
  }
  while (failed_ == 0 && !is_full_) {
    Entry* entry = PopDirty();
    if (entry == nullptr) break;
    FlushEntry(entry);
  }
}

void IoUringPoller::FlushEntry(Entry* entry) {
  if (ABSL_PREDICT_FALSE(!entry->bank.empty())) ServeFromBank(entry);
  // Accepts while somebody waits for it, and else not.
  Listener* listener = entry->listener.get();
  if (listener != nullptr && listener->is_armed && !IsAccepting(entry)) {
    if (!SubmitCancelOf(listener)) MarkDirty(entry);
  }
  while (Operation* op = entry->in_flight == 0 ? nullptr : NextToCancel(entry)) {
    if (SubmitCancelOf(op)) continue;
    MarkDirty(entry);
    break;
  }
  AskFor(entry, &ended_);
}

bool IoUringPoller::IsAccepting(Entry* entry) {
  const Operation* op = entry->queue[kRead].front();
  return op != nullptr && op->opcode == OpCode::kAccept && entry->retiring == nullptr;
}

int64_t IoUringPoller::AskListener(Entry* entry) {
  if (entry->listener == nullptr) {
    entry->listener.reset(new (std::nothrow) Listener(entry));
    if (entry->listener == nullptr) return -ENOMEM;
  }
  Listener* listener = entry->listener.get();
  if (listener->is_armed) return kAsked;
  uring::Sqe* sqe = NextSqe();
  if (sqe == nullptr) return kWouldBlock;
  sqe->opcode = uring::kOpAccept;
  sqe->fd = static_cast<int>(entry->handle);
  sqe->ioprio = uring::kAcceptMultishot;
  sqe->op_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  sqe->user_data = internal::AddressOf(listener) | kListenerTag;
  listener->is_armed = true;
  ++entry->in_flight;
  return kAsked;
}

int64_t IoUringPoller::Ask(Entry* entry, Operation* op) {
  Note* note = NoteOf(op);
  if (ABSL_PREDICT_FALSE(note->is_performed)) return AskPerformed(op);
  if (ABSL_PREDICT_FALSE(note->is_polling)) return AskPoll(op);
  switch (op->opcode) {
    case OpCode::kWaitReadable:
    case OpCode::kWaitWritable:
      return AskPoll(op);
    case OpCode::kAccept:
      return AskListener(entry);
    case OpCode::kSend:
    case OpCode::kConnect:
    case OpCode::kFsync:
      break;
    case OpCode::kSendMsg:
      if (!NewHeader(op)) return -ENOMEM;
      break;
    case OpCode::kWrite:
      if (MustPerform(op)) return AskPerformed(op);
      break;
    default:  // What receives.
      if (starved_.Has(entry)) return kAsked;
      if (op->opcode == OpCode::kRecvLent) {
        const int error = uses_buffers_ ? 0 : OpenBuffers();
        if (error != 0) return error;
      } else if (op->opcode == OpCode::kRecvMsg) {
        if (!NewHeader(op)) return -ENOMEM;
      }
      break;
  }
  uring::Sqe* sqe = NextSqe();
  if (sqe == nullptr) {
    FreeHeader(op);
    return kWouldBlock;
  }
  internal::FillIn(*op, {note->header, options_.buffers.size, !entry->maybe_more}, sqe);
  if (internal::IsSend(*op)) Spare(entry, op, sqe);
  return Asked(op, sqe);
}

int64_t IoUringPoller::Asked(Operation* op, uring::Sqe* sqe) {
  sqe->user_data = internal::AddressOf(op);
  NoteOf(op)->place = submissions_;
  EnterKernel(op);
  return kAsked;
}

// Waits until it can be done, or tried once more.
int64_t IoUringPoller::AskPoll(Operation* op) {
  uring::Sqe* sqe = NextSqe();
  if (sqe == nullptr) return kWouldBlock;
  internal::FillInPoll(*op, sqe);
  return Asked(op, sqe);
}

int64_t IoUringPoller::AskPerformed(Operation* op) {
  Note* note = NoteOf(op);
  note->is_performed = true;
  if (!std::exchange(note->was_tried, true)) {
    const int64_t result = PerformNow(op);
    if (result != kWouldBlock) return result;
  }
  note->is_polling = true;
  return AskPoll(op);
}

bool IoUringPoller::NewHeader(Operation* op) {
  NoteOf(op)->header = static_cast<msghdr*>(internal::AllocateBlock(sizeof(msghdr)));
  return NoteOf(op)->header != nullptr;
}

// Of a send the kernel need not say that it went well, and may not wait for room where it
// would spoil it.
void IoUringPoller::Spare(Entry* entry, Operation* op, uring::Sqe* sqe) {
  Note* note = NoteOf(op);
  if (op->is_quiet && !note->was_tried) {
    sqe->op_flags |= MSG_DONTWAIT | MSG_WAITALL;
    sqe->flags = uring::kSqeCqeSkipSuccess;
    note->is_quiet = true;
    quiet_.push_back(op);
    quiet_bytes_ += internal::SizeOfSend(*op);
  } else if (KeepsMessages(entry)) {
    sqe->op_flags |= MSG_DONTWAIT;
  }
}

// Whether it is a datagram's socket, or the like. A kernel that waits by itself for room
// begins again where it was, and it may have read the message by then: what it sends is
// empty (seen with Unix datagrams on 6.18). So the wait is one of ours.
bool IoUringPoller::KeepsMessages(Entry* entry) {
  if (entry->kind == Kind::kUnknown) {
    int type = SOCK_STREAM;
    socklen_t size = sizeof(type);
    ::getsockopt(static_cast<int>(entry->handle), SOL_SOCKET, SO_TYPE, &type, &size);
    entry->kind = type == SOCK_STREAM ? Kind::kStream : Kind::kMessages;
  }
  return entry->kind == Kind::kMessages;
}

// What there was to cancel says itself how it has ended. False if there is no room.
bool IoUringPoller::SubmitCancel(uint64_t user_data) {
  uring::Sqe* sqe = NextSqe();
  if (sqe == nullptr) return false;
  sqe->opcode = uring::kOpAsyncCancel;
  sqe->fd = -1;
  sqe->addr = user_data;
  sqe->flags = uring::kSqeCqeSkipSuccess;
  sqe->user_data = kIgnoreTag;
  return true;
}

bool IoUringPoller::SubmitCancelOf(Operation* op) {
  Note* note = NoteOf(op);
  if (note->wants_cancel && !note->has_cancel)
    note->has_cancel = SubmitCancel(internal::AddressOf(op));
  return note->has_cancel == note->wants_cancel;
}

bool IoUringPoller::SubmitCancelOf(Listener* listener) {
  if (!listener->has_cancel)
    listener->has_cancel = SubmitCancel(internal::AddressOf(listener) | kListenerTag);
  return listener->has_cancel;
}

// Without waiting, and from elsewhere than `Wait()`.
void IoUringPoller::FlushNow() {
  if (const int error = Open()) {
    failed_ = error;
    return;
  }
  Flush();
  if (const int error = Enter(Uring::Wait())) failed_ = error;
  Reap(&ended_);
}

// --- What the kernel answers ---

void IoUringPoller::Reap(ReadyQueue* done) {
  ReadyQueue finished;
  while (true) {
    while (const uring::Cqe* next = ring_.Peek()) {
      const uring::Cqe cqe = *next;
      ring_.Pop();
      switch (cqe.user_data & kTagMask) {
        case 0:
          OnOperation(reinterpret_cast<Operation*>(cqe.user_data), cqe.res, cqe.flags, &finished);
          break;
        case kListenerTag:
          OnListener(reinterpret_cast<Listener*>(cqe.user_data & ~kTagMask), cqe.res, cqe.flags,
                     &finished);
          break;
        case kWakerTag:
          waker_->Acquire();
          was_woken_ = true;
          if ((cqe.flags & uring::kCqeMore) == 0) watches_waker_ = false;
          break;
        default:
          break;
      }
    }
    // Those for which there was no room come now; among them may be a quiet one's.
    if (quiet_.empty() || !ring_.has_overflow()) break;
    if (const int error = Enter(Uring::Wait())) {
      failed_ = error;
      break;
    }
  }
  if (!quiet_.empty()) FinishQuiet(done);
  done->Splice(&finished);
  done->Splice(&late_);
}

void IoUringPoller::FinishQuiet(ReadyQueue* done) {
  const uint32_t submitted = submissions_ - ring_.unsubmitted();
  size_t left = 0;
  for (Operation* op : quiet_) {
    if (op == nullptr) continue;  // Has ended otherwise.
    if (static_cast<int32_t>(submitted - NoteOf(op)->place) < 0) {
      quiet_[left++] = op;  // Still to be taken.
      continue;
    }
    const int64_t size = static_cast<int64_t>(internal::SizeOfSend(*op));
    FreeHeader(op);
    LeaveKernel(op);
    End(op, size, done);
  }
  quiet_.resize(left);
  quiet_bytes_ = 0;
}

void IoUringPoller::OnListener(Listener* listener, int32_t result, uint32_t flags,
                               ReadyQueue* done) {
  Entry* entry = listener->entry;
  const bool is_armed = (flags & uring::kCqeMore) != 0;
  if (!is_armed) {
    listener->is_armed = listener->has_cancel = false;
    if (entry != nullptr) --entry->in_flight;
  }
  if (entry == nullptr) {
    if (result >= 0) CloseNow(result);
    if (is_armed) return;
    for (auto& orphan : orphan_listeners_) {
      if (orphan.get() != listener) continue;
      std::swap(orphan, orphan_listeners_.back());
      return orphan_listeners_.pop_back();
    }
    return;
  }
  if (result >= 0) result = internal::AboveStandardStreams(result);
  if (result >= 0) {
    // A number that the kernel has just given out cannot be in use: whatever we know of
    // it is about a file that was closed without our knowledge.
    Entry* stale = entries_.Find(result);
    if (stale != nullptr) Abandon(stale);
    if (stale == entry) return CloseNow(result);  // It was our own number.
  }
  // Asked for by us, or the thread has ended; or that connection has gone before we
  // took it.
  const bool is_nothing = result == -ECANCELED || result == -ECONNABORTED || result == -EPROTO;
  if (!is_nothing) {
    Operation* op = entry->queue[kRead].front();
    const bool is_wanted =
        op != nullptr && op->opcode == OpCode::kAccept && NoteOf(op)->phase == Phase::kQueued;
    if (is_wanted) {
      op->result = result;
      if (result >= 0) FillPeer(op);
      End(op, op->result, done);
    } else if (result >= 0) {
      try {
        listener->Keep(result);
      } catch (const std::bad_alloc&) {
        CloseNow(result);
      }
    }
  }
  if (is_armed) return;
  // If it is retiring, the listener may have gone by now.
  if (entry->retiring != nullptr) return FinishRetirement(entry, done);
  if (!entry->queue[kRead].empty()) MarkDirty(entry);
}

void IoUringPoller::OnOperation(Operation* op, int32_t result, uint32_t flags, ReadyQueue* done) {
  Note* note = NoteOf(op);
  Entry* entry = EntryOf(op);
  LeaveKernel(op);
  if (note->header != nullptr) {
    if (op->opcode == OpCode::kRecvMsg && result >= 0) internal::TakeReceived(*note->header, op);
    FreeHeader(op);
  }
  if (std::exchange(note->is_quiet, false)) *std::find(quiet_.begin(), quiet_.end(), op) = nullptr;
  const bool goes_on = !note->wants_cancel && entry != nullptr;
  const bool was_polling = std::exchange(note->is_polling, false);

  if (ABSL_PREDICT_FALSE(result < 0)) {
    // Nobody has asked for that: a signal, or the thread that submitted it has ended.
    if (goes_on && (result == -EINTR || result == -ECANCELED)) {
      if (op->opcode == OpCode::kConnect) note->is_performed = true;  // It may be under way.
      return Again(op);
    }
    if (result == -EINTR) result = -ECANCELED;
  }
  if (entry == nullptr && result == -ECANCELED) result = -EBADF;
  if (was_polling) {
    if (result < 0) return End(op, result, done);
    if (!goes_on) return End(op, -ECANCELED, done);
    if (!note->is_performed) return Again(op);
    const int64_t performed = PerformNow(op);
    if (performed != kWouldBlock) return End(op, performed, done);
    note->is_polling = true;
    return Again(op);
  }

  switch (op->opcode) {
    case OpCode::kWaitReadable:
    case OpCode::kWaitWritable:
      return EndWaits(op, std::min(result, 0), done);
    case OpCode::kRecvLent: {
      if (result == -ENOBUFS && goes_on) {
        buffers_.OnStarved();
        entry->maybe_more = true;
        starved_.Push(entry);
        return;
      }
      const int64_t lent = OnLent(entry, op, result, flags);
      if (lent != kWouldBlock) return End(op, lent, done);
      note->is_polling = true;
      return Again(op);
    }
    case OpCode::kRecv:
      if (entry != nullptr) entry->maybe_more = (flags & uring::kCqeSockNonempty) != 0;
      break;
    case OpCode::kWrite:
      if (op->offset < 0 && goes_on && (result == -EOPNOTSUPP || result == -EINVAL)) {
        // An old kernel, or a file that does not know the flag, which only makes us slower.
        has_no_signal_ = has_no_signal_ && result != -EOPNOTSUPP;
        note->is_performed = true;
        return Again(op);
      }
      break;
    default:
      break;
  }
  // It would have had to wait, and was told not to, or cannot by itself.
  if (result == -EAGAIN && op->opcode != OpCode::kConnect) {
    if (!goes_on) return End(op, -ECANCELED, done);
    note->is_polling = !internal::IsSend(*op) || KeepsMessages(entry);
    note->was_tried = true;
    return Again(op);
  }
  End(op, result, done);
}

// What has come for one without a buffer is left in the entry; returns how the
// operation is given back, or `kWouldBlock` if it is to wait for its file.
int64_t IoUringPoller::OnLent(Entry* entry, Operation* op, int32_t result, uint32_t flags) {
  char* block = nullptr;
  if ((flags & uring::kCqeBuffer) != 0) {
    const uint16_t id = static_cast<uint16_t>(flags >> uring::kCqeBufferShift);
    block = buffers_.Take(id, static_cast<size_t>(std::max(result, 0)));
  }
  if (entry == nullptr) {
    if (block != nullptr) buffers_.Drop(block);
    return -ECANCELED;
  }
  if (result <= 0) {
    if (block != nullptr) buffers_.Drop(block);
    entry->maybe_more = true;
    const bool is_any = (op->flags & kAnyFile) != 0 && !NoteOf(op)->wants_cancel;
    if (is_any && (result == -EAGAIN || (result == 0 && internal::HasNoWriterYet(op->handle)))) {
      return kWouldBlock;
    }
    if (result != -ECANCELED && result != -ENOBUFS) entry->bank.PutError(result);
  } else {
    entry->maybe_more = (flags & uring::kCqeSockNonempty) != 0;
    entry->bank.Put(block, static_cast<uint32_t>(result));
  }
  // There is no next.
  const bool is_kept = entry->retiring != nullptr && (entry->retiring->flags & kKeepOpen) != 0;
  if (is_kept && entry->bank.has_bytes() && !entry->has_lent) {
    Announce(entry, op);
    return 0;
  }
  // One that was cancelled too late leaves what has come to the next.
  if (NoteOf(op)->wants_cancel || result == -ECANCELED || result == -ENOBUFS) return -ECANCELED;
  Announce(entry, op);
  return 0;
}

// To be submitted once more.
void IoUringPoller::Again(Operation* op) {
  NoteOf(op)->has_cancel = false;
  MarkDirty(EntryOf(op));
}

void IoUringPoller::FreeHeader(Operation* op) {
  msghdr* header = std::exchange(NoteOf(op)->header, nullptr);
  if (header != nullptr) internal::FreeBlock(header, sizeof(msghdr));
}

// --- Ending ---

void IoUringPoller::CancelInFlight(Entry* entry) {
  MarkDirty(entry);
  const bool is_listening = entry->listener != nullptr && entry->listener->is_armed;
  if (entry->retiring != nullptr && is_listening) FlushNow();
}

void IoUringPoller::TryWrites(Entry* entry) {
  while (Operation* op = entry->queue[kWrite].front()) {
    Note* note = NoteOf(op);
    if (note->phase != Phase::kQueued || note->was_tried || note->is_polling) return;
    if (op->opcode == OpCode::kConnect || op->opcode == OpCode::kFsync) return;
    const int64_t result = internal::Perform(op);
    note->was_tried = true;
    if (result == kWouldBlock) return;
    End(op, result, &ended_);
  }
}

int64_t IoUringPoller::Close(Entry* entry, NativeHandle handle, bool keeps) {
  if (entry != nullptr) {
    entry->was_kept = keeps && !entry->bank.empty();
    if (entry->was_kept) {
      entry->file = internal::FileOf(handle);
    } else {
      FreeBank(entry);
      if (entry->has_lent) ForgetLent(entry);
    }
    entry->listener.reset();
    entry->maybe_more = true;
    entry->kind = Kind::kUnknown;
  }
  return keeps ? 0 : internal::Close(handle);
}

// The number does not stand for the file any more that we knew by it.
void IoUringPoller::Abandon(Entry* entry) {
  if (entry->listener != nullptr && entry->listener->is_armed) {
    entry->listener->entry = nullptr;
    entry->listener->CloseAccepted();
    orphan_listeners_.push_back(std::move(entry->listener));
    has_orphans_to_cancel_ = true;
  }
  entry->listener.reset();
  ForEachInFlight(entry, [this](Operation* op) {
    op->Unlink();
    NoteOf(op)->entry = nullptr;
    NoteOf(op)->wants_cancel = true;
    orphans_.PushBack(op);
    has_orphans_to_cancel_ = true;
  });
  Disown(entry);
  FreeBank(entry);
  entry->maybe_more = true;
  entry->kind = Kind::kUnknown;
}

// --- The ring ---

int IoUringPoller::Open() {
  if (ring_.is_open()) return 0;
  const int error = ring_.Open(options_.ring);
  if (error != 0) return error;
  submissions_ = 0;
  watches_waker_ = false;
  int failed = uses_buffers_ ? buffers_.Register(&ring_) : 0;
  if (failed == 0 && outer_.is_open()) failed = outer_.Move(&ring_);
  if (failed != 0) {
    ring_.Close();
    return failed;
  }
  // When a server has used up its descriptors, it is too late for these. Without them it
  // works just as well, on this thread.
  waker_->Open();
  end_.Hold(&ring_);
  return 0;
}

int IoUringPoller::OpenToSleep() {
  if (watches_waker_) return 0;
  if (const int error = Open()) return error;
  const int fd = waker_->Open();
  if (fd < 0) return fd;
  uring::Sqe* sqe = NextSqe();
  if (sqe == nullptr) return -EBUSY;
  // Each write to it is a completion of its own; it is never read.
  sqe->opcode = uring::kOpPollAdd;
  sqe->fd = fd;
  sqe->op_flags = POLLIN;
  sqe->len = uring::kPollAddMulti;
  sqe->user_data = kWakerTag;
  watches_waker_ = true;
  return 0;
}

int IoUringPoller::OpenBuffers() {
  int error = buffers_.Register(&ring_);
  if (error == -EEXIST) error = MoveHere();
  if (error == 0 && !buffers_.is_registered()) error = buffers_.Register(&ring_);
  if (error != 0) return error;
  uses_buffers_ = true;
  buffers_.TopUp();
  return 0;
}

int IoUringPoller::Enter(const Uring::Wait& wait) {
  const int error = ring_.Enter(wait);
  if (ABSL_PREDICT_TRUE(error == 0)) return 0;
  return error == -EEXIST ? MoveHere() : error;
}

// The loop runs on another thread than before. Its ring can be closed from here, which
// ends what is in flight before it has done anything; all of that is asked of a new
// ring. Only what workers of the kernel are at has to be waited for. How that ended
// nobody can tell; but to do it once more does no harm, unless it is to append.
int IoUringPoller::MoveHere() {
  Reap(&ended_);
  const uint32_t submitted = submissions_ - ring_.unsubmitted();
  bool has_workers = false, has_listeners = !orphan_listeners_.empty();
  const auto look = [&](Operation* op) {
    if (!internal::IsForWorkers(*op)) return;
    has_workers |= static_cast<int32_t>(submitted - NoteOf(op)->place) >= 0;
  };
  entries_.ForEach([&](NativeHandle, Entry* entry) {
    ForEachInFlight(entry, look);
    has_listeners |= entry->listener != nullptr && entry->listener->is_armed;
  });
  for (Operation* op = orphans_.front(); op != nullptr; op = orphans_.Next(op)) look(op);
  if (has_workers && !end_.is_held()) return -EXDEV;
  ring_.Close();
  const bool has_ended = !end_.is_held() || !(has_workers || has_listeners) ||
                         end_.Wait(absl::Seconds(has_workers ? 30 : 1));
  end_.Forget();
  if (!has_ended && has_workers) return -EXDEV;
  for (Operation* op : quiet_) {
    if (op != nullptr) NoteOf(op)->is_quiet = false;
  }
  quiet_.clear();
  while (Operation* op = orphans_.PopFront()) {
    FreeHeader(op);
    Finish(op, -ECANCELED, &ended_);
  }
  orphan_listeners_.clear();
  entries_.ForEach([this](NativeHandle, Entry* entry) {
    ++entry->in_flight;  // So that it is retired only when all have been looked at.
    ForEachInFlight(entry, [this](Operation* op) { AskAnew(op); });
    if (entry->listener != nullptr && entry->listener->is_armed) {
      entry->listener->is_armed = entry->listener->has_cancel = false;
      --entry->in_flight;
      MarkDirty(entry);
    }
    --entry->in_flight;
    FinishRetirement(entry, &ended_);
  });
  return Open();
}

// The ring that had it is gone.
void IoUringPoller::AskAnew(Operation* op) {
  Note* note = NoteOf(op);
  FreeHeader(op);
  LeaveKernel(op);
  note->is_polling = false;
  if (op->opcode == OpCode::kConnect) note->is_performed = true;
  if (note->wants_cancel) {
    End(op, -ECANCELED, &ended_);
  } else if (internal::IsForWorkers(*op) && op->opcode == OpCode::kWrite &&
             (::fcntl(static_cast<int>(op->handle), F_GETFL) & O_APPEND) != 0) {
    End(op, -EIO, &ended_);
  } else {
    Again(op);
  }
}

absl::Status IoUringPoller::Wait(TimePoint deadline, ReadyQueue* done) {
  Collect(done);
  bool may_sleep = done->empty() && deadline.nanoseconds() > 0;
  // Nothing can have come.
  if (!ring_.is_open() && !may_sleep && !has_dirty()) return absl::OkStatus();
  ReadyQueue finished;
  while (true) {
    if (ABSL_PREDICT_FALSE(!ring_.is_open())) {
      if (const int error = Open()) {
        if (!internal::IsShortage(-error)) return SystemError("io_uring_setup", -error);
        if (may_sleep && finished.empty()) internal::Nap(internal::NapUntil(deadline));
        break;
      }
    }
    bool is_nap = false;
    if (may_sleep && !watches_waker_) {
      if (const int error = OpenToSleep()) {
        if (!internal::IsShortage(-error)) return SystemError("eventfd", -error);
        is_nap = true;
      }
    }
    // The kernel had no room for them, and meanwhile somebody may wait for their end.
    const bool has_old_quiet = ABSL_PREDICT_FALSE(ring_.unsubmitted() > 0) && !quiet_.empty();
    Flush();
    if (was_woken_ || !ended_.empty() || ring_.Peek() != nullptr || !starved_.empty() ||
        has_old_quiet || quiet_bytes_ > kMostQuietBytes) {
      may_sleep = false;
    }
    if (may_sleep || ring_.unsubmitted() > 0 || ring_.MustEnter()) {
      Uring::Wait wait;
      if (may_sleep) {
        wait.count = 1;
        wait.deadline = deadline;
        if (ABSL_PREDICT_FALSE(is_nap)) {
          wait.deadline = std::min(
              deadline, SteadyClock::Read() + absl::Milliseconds(internal::kNapMilliseconds));
        }
      }
      const int error = failed_ != 0 ? 0 : Enter(wait);
      if (error == -EINTR && may_sleep) break;  // Somebody may want to look at what it did.
      if (error != 0 && error != -EINTR) failed_ = error;
    }
    // A new one is wanted, and could not be had yet.
    if (failed_ != 0 && !ring_.is_open() && internal::IsShortage(-failed_)) failed_ = 0;
    Reap(&finished);
    if (ABSL_PREDICT_FALSE(failed_ != 0)) {
      done->Splice(&finished);
      return SystemError("io_uring_enter", -std::exchange(failed_, 0));
    }
    if (!may_sleep || is_nap || was_woken_ || !finished.empty() || !ended_.empty()) break;
    // What has come meant nothing yet: a request was put off, or tried once more.
    if (deadline != TimePoint::InfiniteFuture() && SteadyClock::Read() >= deadline) break;
  }
  was_woken_ = false;
  done->Splice(&finished);
  Collect(done);
  return absl::OkStatus();
}

// --- A foreign loop ---

NativeHandle IoUringPoller::BackendFd() {
  if (outer_.is_open()) return outer_.fd();
  if (OpenToSleep() != 0 || !outer_.Open(&ring_, waker_->Open())) return kInvalidHandle;
  ArmBackend(TimePoint::InfiniteFuture());
  return outer_.fd();
}

void IoUringPoller::ArmBackend(TimePoint deadline) {
  if (!outer_.is_open()) return;
  if (has_dirty() || ring_.unsubmitted() > 0) FlushNow();
  outer_.Clear();
  const bool is_due = !ended_.empty() || has_dirty() || !starved_.empty() || failed_ != 0 ||
                      ring_.Peek() != nullptr || ring_.MustEnter() || was_woken_;
  outer_.Arm(is_due ? TimePoint::InfinitePast() : deadline);
}

IoUringPoller::~IoUringPoller() {
  if (ring_.is_open() && ring_.is_ours()) {
    Drain();
    // Whom it accepted for nobody.
    while (const uring::Cqe* cqe = ring_.Peek()) {
      if ((cqe->user_data & kTagMask) == kListenerTag && cqe->res >= 0) CloseNow(cqe->res);
      ring_.Pop();
    }
  }
  ring_.Close();
  entries_.ForEach([this](NativeHandle, Entry* entry) {
    ForEachInFlight(entry, [](Operation* op) { FreeHeader(op); });
    FreeBank(entry);
  });
  for (Operation* op = orphans_.front(); op != nullptr; op = orphans_.Next(op)) {
    FreeHeader(op);
  }
  Drop(&orphans_);
}

}  // namespace

std::unique_ptr<Poller> MakeIoUringPoller() {
  return std::make_unique<IoUringPoller>(IoUringPollerOptions());
}

std::unique_ptr<Poller> internal::MakeIoUringPollerWith(const IoUringPollerOptions& options) {
  return std::make_unique<IoUringPoller>(options);
}

}  // namespace weft
