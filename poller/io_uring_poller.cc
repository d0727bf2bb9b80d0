// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Completion by io_uring(7). The rings themselves are in `uring_linux`, the buffers
// that are lent in `uring_buffers_linux`; here is what is asked of the kernel, when,
// and what its answers mean.
//
// What shapes it:
//   * `Start()` only puts an operation in its place in a queue of its handle; what is
//     first in a queue becomes a submission in `Wait()`, all in one system call, and
//     the same call waits. So an operation that is cancelled before has cost the
//     kernel nothing, the loop may be made on another thread than it runs on, and
//     order is kept: two requests of one direction in flight may overtake each other.
//   * What is in flight is the kernel's until it says that it is done. The operation
//     itself is the request's name (`user_data`), so it has to be there; nothing
//     refers to an operation that was given back.
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
//     file. So retiring cancels first and closes when nothing is left; for a listener
//     in `Start()`, as somebody may want its port at once.
//   * A handle that goes back to its owner (`kKeepOpen`) may have bytes here that the
//     kernel handed over before it heard of that. An operation that has announced them,
//     or was cancelled too late, may still fetch them; else they are kept for the next
//     operation on the same file. Who receives by himself misses those.
//   * A request belongs to the thread that submitted it, and ends with -ECANCELED
//     when that thread does. Nobody has asked for that, so it is submitted again. If a
//     loop goes on on another thread, the ring stays behind and a new one is made:
//     that is why the ring is not registered with its thread (which would save some
//     nanoseconds a call), as such a ring cannot be closed from elsewhere.
//   * What workers of the kernel are at (a file, at an offset) does not end with the ring,
//     and only the old thread could hear of its end. So such a ring holds the last
//     reference to one end of a pipe, as a registered file: the other end hangs up when
//     the kernel has freed the ring, which it does when the last request has ended.

#include "weft/poller/io_uring_poller.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/macros.h"
#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "weft/core/block_pool.h"
#include "weft/core/clock.h"
#include "weft/core/intrusive_list.h"
#include "weft/poller/eventfd_waker_linux.h"
#include "weft/poller/handle_table.h"
#include "weft/poller/perform_posix.h"
#include "weft/poller/shortage_posix.h"
#include "weft/poller/standard_streams_posix.h"

namespace weft {

namespace {

using internal::EventfdWaker;
using internal::HandleTable;
using internal::IoUringPollerOptions;
using internal::kWouldBlock;
using internal::Uring;
using internal::UringBuffers;

namespace uring = internal::uring;

absl::Status SystemError(const char* call, int error) {
  const std::string message = absl::StrCat("io_uring poller: ", call, ": ", std::strerror(error));
  return internal::IsShortage(error) ? absl::ResourceExhaustedError(message)
                                     : absl::InternalError(message);
}

uint32_t ClampSize(size_t size) { return static_cast<uint32_t>(std::min<size_t>(size, 1u << 30)); }

// What it is to send.
int64_t SizeOfSend(const Operation* op) {
  if (op->opcode == OpCode::kSend) return ClampSize(op->buffer.size);
  int64_t size = 0;
  for (size_t i = 0; i < op->buffers.count; ++i) {
    size += static_cast<int64_t>(op->buffers.data[i].size);
  }
  return size;
}

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

void CloseNow(int64_t handle) { internal::Close(static_cast<NativeHandle>(handle)); }

uint64_t FileOf(const struct stat& status) {
  return static_cast<uint64_t>(status.st_dev) << 40 ^ static_cast<uint64_t>(status.st_ino);
}

// Says which file it is, as far as that can be told; 0 if there is none.
uint64_t FileOf(NativeHandle handle) {
  struct stat status;
  return ::fstat(static_cast<int>(handle), &status) == 0 ? FileOf(status) : 0;
}

// Whether one can wait for such a file, as epoll has it; 0 or a negated errno.
int CheckWatchable(NativeHandle handle, uint64_t* file) {
  const int fd = static_cast<int>(handle);
  struct stat status;
  if (::fstat(fd, &status) < 0) return -errno;
  *file = FileOf(status);
  if (S_ISSOCK(status.st_mode) || S_ISFIFO(status.st_mode)) return 0;
  if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return -EPERM;
  // It depends on the driver, and nobody else tells.
  const int epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) return 0;
  epoll_event event = {};
  const int error = ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? errno : 0;
  ::close(epoll_fd);
  return error == EPERM ? -EPERM : 0;
}

class IoUringPoller final : public Poller {
 public:
  explicit IoUringPoller(const IoUringPollerOptions& options)
      : options_(options), buffers_(options.buffers) {}
  ~IoUringPoller() override;

  std::string_view name() const override { return "io_uring"; }
  StartResult Start(Operation* op) override;
  void Cancel(Operation* op) override;
  void CancelAll() override;
  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) override;
  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override;
  std::shared_ptr<Waker> MakeWaker() override { return waker_; }
  NativeHandle BackendFd() override;
  void ArmBackend(TimePoint deadline) override;

 private:
  enum Direction : uint8_t { kRead = 0, kWrite = 1 };

  enum class Kind : uint8_t { kUnknown, kStream, kMessages };

  enum class Phase : uint8_t {
    kQueued,    // To be submitted, or waiting for those before it.
    kInFlight,  // The kernel's.
    kEnded,     // Its result is there, and waits for those before it: in a retirement.
  };

  // What is kept in an operation.
  struct Note {
    uint64_t sequence = 0;     // The order of starting.
    msghdr* header = nullptr;  // kSendMsg, kRecvMsg: while it is in flight.
    uint32_t generation = 0;   // kRecvLent: of the entry, when it was announced.
    uint32_t place = 0;        // Of a quiet one, and one for workers: its place among all.
    Phase phase = Phase::kQueued;
    bool was_tried = false;     // The kernel would have had to wait.
    bool is_polling = false;    // In flight is not itself, but the wait for readiness.
    bool is_performed = false;  // Is to be done by a system call of ours.
    bool is_quiet = false;      // Done when the call returns without a word about it.
    bool is_orphan = false;     // Its entry knows it no more.
    bool is_unfetched = false;  // kRecvLent: announced, and not fetched.
    bool wants_cancel = false;
    bool has_cancel = false;  // The kernel was told so.
  };

  // A listening socket: one request accepts again and again.
  struct Listener {
    bool is_armed = false;
    bool has_cancel = false;
    bool is_orphan = false;
    NativeHandle handle = kInvalidHandle;
    std::vector<int> accepted;  // That nobody has asked for yet, oldest first.
    size_t taken = 0;           // Of those.

    bool has_accepted() const { return taken < accepted.size(); }
    int Take() {
      const int fd = accepted[taken++];
      if (taken == accepted.size()) {
        accepted.clear();
        taken = 0;
      }
      return fd;
    }
    void CloseAccepted() {
      while (has_accepted()) CloseNow(Take());
    }
  };

  // What is known of a handle.
  struct Entry {
    bool has_bank() const { return bank != nullptr || bank_error != 0; }

    List<Operation> queue[2];  // In the order of starting; the first may be in flight.
    // kWaitReadable, kWaitWritable: one of each is asked for, and says it for all.
    List<Operation> waits;
    // What has come for one who had no buffer: announced, and not fetched yet, or left
    // behind by one who gave up.
    char* bank = nullptr;
    uint32_t bank_begin = 0;
    uint32_t bank_end = 0;
    int bank_error = 0;
    uint32_t generation = 1;
    uint64_t file = 0;  // Which one `waits` wait for, or the bank was kept of.
    std::unique_ptr<Listener> listener;
    Operation* retiring = nullptr;
    int32_t next_dirty = kNobody;
    int32_t next_starved = kNobody;
    bool is_dirty = false;    // There may be something to submit.
    bool is_starved = false;  // It found no buffer.
    bool has_lent = false;    // One is announced and not fetched: others wait.
    bool was_kept = false;    // Retired since, and kept open: `bank` may be another file's.
    bool maybe_more = true;   // For all we know there is something to receive.
    Kind kind = Kind::kUnknown;
  };

  // Entries by number, in a list.
  struct Chain {
    int32_t first = kNobody;
    int32_t last = kNobody;
  };

  static constexpr int32_t kNobody = -1;
  // How much of what was sent may be kept over a sleep: as much as a hundred large
  // answers, so that a call more for them all does not count.
  static constexpr size_t kMostQuietBytes = 1024 * 1024;
  static constexpr uint64_t kTagMask = 7;
  static constexpr uint64_t kListenerTag = 1;
  static constexpr uint64_t kWakerTag = 2;
  static constexpr uint64_t kIgnoreTag = 3;

  static Note* NoteOf(Operation* op) {
    static_assert(sizeof(Note) <= Operation::kBackendBytes && alignof(Note) <= 8);
    return std::launder(reinterpret_cast<Note*>(op->backend));
  }
  static Direction DirectionOf(OpCode opcode);
  // Whether the kernel may have a thread of its own do it.
  static bool IsForWorkers(const Operation* op) {
    return op->opcode == OpCode::kFsync ||
           ((op->opcode == OpCode::kRead || op->opcode == OpCode::kWrite) && op->offset >= 0);
  }
  static bool IsWait(const Operation* op) {
    return op->opcode == OpCode::kWaitReadable || op->opcode == OpCode::kWaitWritable;
  }

  // Starting.
  StartResult Done(Operation* op, int64_t result);
  StartResult Pending(Operation* op);
  StartResult StartWait(Entry* entry, Operation* op);
  StartResult Retire(Operation* op);
  bool TakeBanked(Entry* entry, Operation* op);
  void ServeFromBank(Entry* entry);
  void FreeBank(Entry* entry);
  void LookWhoseBank(NativeHandle handle, Entry* entry);
  void Announce(Entry* entry, Operation* op);
  void FillPeer(Operation* op);
  bool MustPerform(const Operation* op) const;
  static int64_t PerformNow(Operation* op);

  // Submitting.
  void MarkDirty(NativeHandle handle, Entry* entry);
  void Starve(NativeHandle handle, Entry* entry);
  uring::Sqe* NextSqe();
  void Flush();
  void FlushEntry(NativeHandle handle, Entry* entry);
  void FlushListener(NativeHandle handle, Entry* entry);
  void Submit(Entry* entry, Operation* op);
  bool FillIn(Entry* entry, Operation* op, uring::Sqe* sqe);
  static bool KeepsMessages(Entry* entry, NativeHandle handle);
  void SubmitPoll(Operation* op, bool to_write);
  bool SubmitCancel(uint64_t user_data);
  bool SubmitCancelOf(Operation* op);
  bool SubmitCancelOf(Listener* listener);
  void FlushNow();

  // What the kernel answers.
  void Reap(ReadyQueue* done);
  void OnListener(Listener* listener, int32_t result, uint32_t flags, ReadyQueue* done);
  void OnOperation(Operation* op, int32_t result, uint32_t flags, ReadyQueue* done);
  int64_t OnLent(Entry* entry, Operation* op, int32_t result, uint32_t flags);
  void Again(Entry* entry, Operation* op);
  void End(Entry* entry, Operation* op, int64_t result, ReadyQueue* done);
  void EndWaits(Entry* entry, Operation* op, int64_t result, ReadyQueue* done);
  void Finish(Operation* op, int64_t result, ReadyQueue* done);
  static void FreeHeader(Operation* op);
  void FinishQuiet(ReadyQueue* done);

  // Ending.
  void CancelPending(Entry* entry, Operation* op);
  void TryWrites(Entry* entry, ReadyQueue* done);
  bool HasInFlight(Entry* entry) const;
  void EndAll(Entry* entry, ReadyQueue* done);
  void FinishRetirement(Entry* entry, ReadyQueue* done);
  void CloseEntry(Entry* entry, Operation* op);
  void Abandon(Entry* entry);
  void DropListener(Entry* entry);

  // The ring.
  int Open();
  int OpenToSleep();
  int OpenBuffers();
  int Enter(const Uring::Wait& wait);
  int MoveHere();
  void HoldPipe();
  int WaitForWorkers();
  template <class Fn>
  void ForEachInFlight(Fn fn);

  const IoUringPollerOptions options_;
  Uring ring_;
  HandleTable<Entry> entries_;
  UringBuffers buffers_;
  std::shared_ptr<EventfdWaker> waker_ = std::make_shared<EventfdWaker>();
  Chain dirty_;
  Chain starved_;
  List<Operation> orphans_;  // In flight on a file that its number stands for no more.
  std::vector<std::unique_ptr<Listener>> orphan_listeners_;
  std::vector<Operation*> quiet_;  // Submitted, and to be done when the call returns.
  ReadyQueue late_;                // Writable ones, which are reported after readable ones.
  uint64_t next_sequence_ = 0;
  size_t quiet_bytes_ = 0;    // Of quiet ones that were filled in since the last `Reap()`.
  uint32_t submissions_ = 0;  // So many entries were filled in.
  bool uses_buffers_ = false;
  bool has_orphans_to_cancel_ = false;
  bool watches_waker_ = false;
  bool was_woken_ = false;
  bool is_full_ = false;       // The kernel takes no more until it was reaped.
  bool has_no_signal_ = true;  // RWF_NOSIGNAL, as far as we know.
  int failed_ = 0;             // What has befallen the ring outside of `Wait()`.
  int freed_fd_ = -1;          // Hangs up when the ring is freed; -1 if no worker was asked.
  int outer_fd_ = -1;          // For a foreign loop: an epoll set of the next two.
  int event_fd_ = -1;
  int timer_fd_ = -1;
};

IoUringPoller::Direction IoUringPoller::DirectionOf(OpCode opcode) {
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

StartResult IoUringPoller::Start(Operation* op) {
  ABSL_HARDENING_ASSERT(op->state != Operation::State::kPending && !op->is_linked());
  new (op->backend) Note;
  NoteOf(op)->sequence = next_sequence_++;
  if (op->opcode == OpCode::kRetire) return Retire(op);
  if (ABSL_PREDICT_FALSE(op->handle < 0 || op->handle > INT_MAX)) return Done(op, -EBADF);
  int64_t error = 0;
  Entry* entry = entries_.Get(op->handle, &error);
  if (ABSL_PREDICT_FALSE(entry == nullptr)) return Done(op, error);
  if (ABSL_PREDICT_FALSE(entry->retiring != nullptr)) return Done(op, -EBADF);
  if (IsWait(op)) return StartWait(entry, op);

  const Direction direction = DirectionOf(op->opcode);
  List<Operation>& queue = entry->queue[direction];
  if (queue.empty()) {
    if (direction == kRead) {
      if (TakeBanked(entry, op)) return StartResult::kDone;
    } else if (op->opcode == OpCode::kConnect) {
      // Only the Internet's takes time; of a full Unix backlog no readiness tells.
      const auto* address = reinterpret_cast<const sockaddr*>(op->address->bytes);
      if (address->sa_family == AF_UNIX) {
        const int64_t result = internal::Perform(op);
        if (result != kWouldBlock) return Done(op, result);
      }
    } else if (MustPerform(op)) {
      const int64_t result = internal::Perform(op);
      if (result != kWouldBlock) return Done(op, result);
      NoteOf(op)->was_tried = NoteOf(op)->is_performed = true;
    }
    MarkDirty(op->handle, entry);
  }
  queue.PushBack(op);
  return Pending(op);
}

StartResult IoUringPoller::Done(Operation* op, int64_t result) {
  op->result = result;
  op->state = Operation::State::kDone;
  return StartResult::kDone;
}

StartResult IoUringPoller::Pending(Operation* op) {
  op->state = Operation::State::kPending;
  ++pending_;
  return StartResult::kPending;
}

StartResult IoUringPoller::StartWait(Entry* entry, Operation* op) {
  if (ABSL_PREDICT_FALSE(entry->was_kept)) LookWhoseBank(op->handle, entry);
  if ((op->flags & kWaitAgain) == 0) {
    uint64_t file = 0;
    if (const int error = CheckWatchable(op->handle, &file)) return Done(op, error);
    // Those that wait already may wait for a file that was closed without our knowledge.
    if (!entry->waits.empty() && entry->file != file) Abandon(entry);
    entry->file = file;
  }
  // What the kernel has handed over is not there any more for it.
  const bool has_something =
      entry->has_bank() || (entry->listener != nullptr && entry->listener->has_accepted());
  if (op->opcode == OpCode::kWaitReadable && has_something) return Done(op, 0);
  entry->waits.PushBack(op);
  MarkDirty(op->handle, entry);
  return Pending(op);
}

// Serves `op` from what has come already; false if there is nothing, or nothing for
// such a one. REQUIRES: nobody is before it.
bool IoUringPoller::TakeBanked(Entry* entry, Operation* op) {
  if (op->opcode == OpCode::kAccept) {
    Listener* listener = entry->listener.get();
    if (listener == nullptr || !listener->has_accepted()) return false;
    op->result = listener->Take();
    op->state = Operation::State::kDone;
    FillPeer(op);
    return true;
  }
  if (ABSL_PREDICT_TRUE(!entry->has_bank())) return false;
  if (entry->was_kept) LookWhoseBank(op->handle, entry);
  if (!entry->has_bank() || entry->has_lent) return false;
  if (op->opcode == OpCode::kRecvLent) {
    Announce(entry, op);
    Done(op, 0);
    return true;
  }
  if (entry->bank_error != 0) {
    Done(op, std::exchange(entry->bank_error, 0));
    return true;
  }
  const Buffer* pieces = &op->buffer;
  size_t count = 1;
  if (op->opcode == OpCode::kRecvMsg) {
    pieces = op->buffers.data;
    count = op->buffers.count;
    if (op->address != nullptr) op->address->length = 0;
    op->control_size = 0;
  }
  uint32_t at = entry->bank_begin;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = std::min<size_t>(pieces[i].size, entry->bank_end - at);
    std::memcpy(pieces[i].data, entry->bank + at, size);
    at += static_cast<uint32_t>(size);
  }
  Done(op, at - entry->bank_begin);
  if (op->opcode != OpCode::kRead && (op->flags & MSG_PEEK) != 0) return true;
  entry->bank_begin = at;
  if (entry->bank_begin == entry->bank_end) FreeBank(entry);
  return true;
}

// What one has left behind who gave up is for those who came after it.
void IoUringPoller::ServeFromBank(Entry* entry) {
  while (entry->has_bank() && !entry->has_lent) {
    Operation* op = entry->queue[kRead].front();
    if (op == nullptr || NoteOf(op)->phase != Phase::kQueued || !TakeBanked(entry, op)) return;
    End(entry, op, op->result, &ended_);
  }
}

void IoUringPoller::FreeBank(Entry* entry) {
  if (entry->bank != nullptr) buffers_.Drop(std::exchange(entry->bank, nullptr));
  entry->bank_error = 0;
  entry->was_kept = false;
}

// The first who comes after the handle was kept open. Nobody else will fetch what is there.
void IoUringPoller::LookWhoseBank(NativeHandle handle, Entry* entry) {
  entry->was_kept = false;
  if (std::exchange(entry->has_lent, false)) ++entry->generation;
  if (FileOf(handle) != entry->file) FreeBank(entry);
}

// It is `op`'s turn to fetch; until it has, or gives up, others wait.
void IoUringPoller::Announce(Entry* entry, Operation* op) {
  entry->has_lent = true;
  NoteOf(op)->is_unfetched = true;
  NoteOf(op)->generation = entry->generation;
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

StartResult IoUringPoller::FetchLent(Operation* op, SlabPool*, Slab* slab) {
  slab->Reset();
  ABSL_HARDENING_ASSERT(op->state == Operation::State::kDone && op->opcode == OpCode::kRecvLent);
  Note* note = NoteOf(op);
  if (!std::exchange(note->is_unfetched, false)) return StartResult::kDone;  // Has its error.
  Entry* entry = entries_.Find(op->handle);
  if (entry->generation != note->generation) return Done(op, -ECANCELED);  // Retired since.
  entry->has_lent = entry->was_kept = false;
  if (!entry->queue[kRead].empty()) MarkDirty(op->handle, entry);
  if (entry->bank == nullptr) return Done(op, std::exchange(entry->bank_error, 0));
  const uint32_t size = entry->bank_end - entry->bank_begin;
  *slab = buffers_.ToSlab(std::exchange(entry->bank, nullptr));
  // Somebody took some of it in between.
  if (entry->bank_begin != 0) std::memmove(slab->data(), slab->data() + entry->bank_begin, size);
  return Done(op, size);
}

// --- Submitting ---

void IoUringPoller::MarkDirty(NativeHandle handle, Entry* entry) {
  if (entry->is_dirty) return;
  entry->is_dirty = true;
  const int32_t number = static_cast<int32_t>(handle);
  if (dirty_.first == kNobody) {
    dirty_.first = number;
  } else {
    entries_.Find(dirty_.last)->next_dirty = number;
  }
  dirty_.last = number;
}

void IoUringPoller::Starve(NativeHandle handle, Entry* entry) {
  if (entry->is_starved) return;
  entry->is_starved = true;
  const int32_t number = static_cast<int32_t>(handle);
  if (starved_.first == kNobody) {
    starved_.first = number;
  } else {
    entries_.Find(starved_.last)->next_starved = number;
  }
  starved_.last = number;
}

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
  for (uint32_t left = buffers_.provided(); left > 0 && starved_.first != kNobody; --left) {
    const NativeHandle handle = starved_.first;
    Entry* entry = entries_.Find(handle);
    starved_.first = std::exchange(entry->next_starved, kNobody);
    entry->is_starved = false;
    MarkDirty(handle, entry);
  }
  while (dirty_.first != kNobody && failed_ == 0 && !is_full_) {
    const NativeHandle handle = dirty_.first;
    Entry* entry = entries_.Find(handle);
    dirty_.first = std::exchange(entry->next_dirty, kNobody);
    entry->is_dirty = false;
    FlushEntry(handle, entry);
  }
}

void IoUringPoller::FlushEntry(NativeHandle handle, Entry* entry) {
  if (entry->listener != nullptr) FlushListener(handle, entry);
  if (ABSL_PREDICT_FALSE(entry->has_bank())) ServeFromBank(entry);
  for (Direction direction : {kRead, kWrite}) {
    Operation* op = entry->queue[direction].front();
    if (op == nullptr) continue;
    if (NoteOf(op)->phase == Phase::kInFlight) {
      if (!SubmitCancelOf(op)) MarkDirty(handle, entry);
    } else if (op->opcode == OpCode::kAccept) {
      if (entry->listener == nullptr) FlushListener(handle, entry);
    } else if (NoteOf(op)->phase == Phase::kQueued && entry->retiring == nullptr &&
               !(direction == kRead && (entry->has_lent || entry->is_starved))) {
      Submit(entry, op);
    }
  }
  // asyncio reports the reader of a descriptor before its writer.
  for (const OpCode opcode : {OpCode::kWaitReadable, OpCode::kWaitWritable}) {
    bool is_asked = entry->retiring != nullptr;
    for (Operation* op = entry->waits.front(); op != nullptr; op = entry->waits.Next(op)) {
      if (op->opcode != opcode) continue;
      Note* note = NoteOf(op);
      if (note->phase == Phase::kInFlight) {
        if (!SubmitCancelOf(op)) MarkDirty(handle, entry);
        if (!note->wants_cancel) is_asked = true;
      } else if (note->phase == Phase::kQueued && !std::exchange(is_asked, true)) {
        SubmitPoll(op, opcode == OpCode::kWaitWritable);
      }
    }
  }
}

// Accepts while somebody waits for it, and else not.
void IoUringPoller::FlushListener(NativeHandle handle, Entry* entry) {
  Operation* op = entry->queue[kRead].front();
  const bool is_wanted =
      op != nullptr && op->opcode == OpCode::kAccept && entry->retiring == nullptr;
  Listener* listener = entry->listener.get();
  if (listener != nullptr && listener->is_armed) {
    if (!is_wanted && !SubmitCancelOf(listener)) MarkDirty(handle, entry);
    return;
  }
  if (!is_wanted) return;
  if (listener == nullptr) {
    entry->listener.reset(new (std::nothrow) Listener);
    listener = entry->listener.get();
    if (listener == nullptr) return End(entry, op, -ENOMEM, &ended_);
    listener->handle = handle;
  }
  uring::Sqe* sqe = NextSqe();
  if (sqe == nullptr) return MarkDirty(handle, entry);
  sqe->opcode = uring::kOpAccept;
  sqe->fd = static_cast<int>(handle);
  sqe->ioprio = uring::kAcceptMultishot;
  sqe->op_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  sqe->user_data = Address(listener) | kListenerTag;
  listener->is_armed = true;
}

void IoUringPoller::Submit(Entry* entry, Operation* op) {
  Note* note = NoteOf(op);
  if (ABSL_PREDICT_FALSE(MustPerform(op) || note->is_performed)) {
    if (!std::exchange(note->was_tried, true)) {
      note->is_performed = true;
      const int64_t result = PerformNow(op);
      if (result != kWouldBlock) return End(entry, op, result, &ended_);
    }
    note->is_polling = true;
  }
  if (note->is_polling) return SubmitPoll(op, DirectionOf(op->opcode) == kWrite);

  if (op->opcode == OpCode::kRecvLent && !uses_buffers_) {
    if (const int error = OpenBuffers()) return End(entry, op, error, &ended_);
  }
  if (IsForWorkers(op) && freed_fd_ < 0) HoldPipe();
  uring::Sqe* sqe = NextSqe();
  if (sqe == nullptr) return MarkDirty(op->handle, entry);
  sqe->fd = static_cast<int>(op->handle);
  sqe->user_data = Address(op);
  note->phase = Phase::kInFlight;
  if (!FillIn(entry, op, sqe)) {
    sqe->opcode = uring::kOpNop;
    sqe->user_data = kIgnoreTag;
    sqe->flags = uring::kSqeCqeSkipSuccess;
    note->phase = Phase::kQueued;
    End(entry, op, -ENOMEM, &ended_);
  }
}

// What the submission says, but for whom it is about. False if there is no memory.
bool IoUringPoller::FillIn(Entry* entry, Operation* op, uring::Sqe* sqe) {
  Note* note = NoteOf(op);
  switch (op->opcode) {
    case OpCode::kRecvLent:
      sqe->flags = uring::kSqeBufferSelect;
      sqe->buf_group = UringBuffers::kGroup;
      sqe->len = options_.buffers.size;
      if ((op->flags & kAnyFile) != 0) {
        sqe->opcode = uring::kOpRead;
        sqe->off = static_cast<uint64_t>(-1);
      } else {
        sqe->opcode = uring::kOpRecv;
        if (!entry->maybe_more) sqe->ioprio = uring::kRecvSendPollFirst;
      }
      return true;
    case OpCode::kRecv:
      sqe->opcode = uring::kOpRecv;
      sqe->addr = Address(op->buffer.data);
      sqe->len = ClampSize(op->buffer.size);
      sqe->op_flags = static_cast<uint32_t>(op->flags & ~MSG_WAITALL);
      if (!entry->maybe_more && op->flags == 0) sqe->ioprio = uring::kRecvSendPollFirst;
      return true;
    case OpCode::kSend:
      sqe->opcode = uring::kOpSend;
      sqe->addr = Address(op->buffer.data);
      sqe->len = ClampSize(op->buffer.size);
      sqe->op_flags = static_cast<uint32_t>(op->flags | MSG_NOSIGNAL);
      break;
    case OpCode::kSendMsg:
    case OpCode::kRecvMsg: {
      if (note->header == nullptr) {
        note->header = static_cast<msghdr*>(internal::AllocateBlock(sizeof(msghdr)));
        if (note->header == nullptr) return false;
      }
      *note->header = {};
      note->header->msg_iov = reinterpret_cast<iovec*>(const_cast<Buffer*>(op->buffers.data));
      note->header->msg_iovlen = op->buffers.count;
      if (op->control_size != 0) {
        note->header->msg_control = op->control;
        note->header->msg_controllen = op->control_size;
      }
      if (op->address != nullptr) note->header->msg_name = op->address->bytes;
      sqe->addr = Address(note->header);
      sqe->len = 1;
      if (op->opcode == OpCode::kRecvMsg) {
        if (op->address != nullptr) note->header->msg_namelen = SockAddr::kCapacity;
        sqe->opcode = uring::kOpRecvMsg;
        sqe->op_flags = static_cast<uint32_t>((op->flags & ~MSG_WAITALL) | MSG_CMSG_CLOEXEC);
        return true;
      }
      if (op->address != nullptr) note->header->msg_namelen = op->address->length;
      sqe->opcode = uring::kOpSendMsg;
      sqe->op_flags = static_cast<uint32_t>(op->flags | MSG_NOSIGNAL);
      break;
    }
    case OpCode::kConnect:
      sqe->opcode = uring::kOpConnect;
      sqe->addr = Address(op->address->bytes);
      sqe->off = op->address->length;
      return true;
    case OpCode::kRead:
    case OpCode::kWrite:
      note->place = submissions_;
      sqe->opcode = op->opcode == OpCode::kRead ? uring::kOpRead : uring::kOpWrite;
      sqe->addr = Address(op->buffer.data);
      sqe->len = ClampSize(op->buffer.size);
      sqe->off = static_cast<uint64_t>(op->offset);
      if (op->opcode == OpCode::kWrite && op->offset < 0) sqe->op_flags = uring::kRwfNoSignal;
      return true;
    case OpCode::kFsync:
      note->place = submissions_;
      sqe->opcode = uring::kOpFsync;
      if ((op->flags & kDataOnly) != 0) sqe->op_flags = uring::kFsyncDataSync;
      return true;
    default:
      return false;
  }
  if (op->is_quiet && !note->was_tried) {
    sqe->op_flags |= MSG_DONTWAIT | MSG_WAITALL;
    sqe->flags = uring::kSqeCqeSkipSuccess;
    note->place = submissions_;
    note->is_quiet = true;
    quiet_.push_back(op);
    quiet_bytes_ += static_cast<size_t>(SizeOfSend(op));
  } else if (KeepsMessages(entry, op->handle)) {
    sqe->op_flags |= MSG_DONTWAIT;
  }
  return true;
}

// Whether it is a datagram's socket, or the like. A kernel that waits by itself for room
// begins again where it was, and it may have read the message by then: what it sends is
// empty (seen with Unix datagrams on 6.18). So the wait is one of ours.
bool IoUringPoller::KeepsMessages(Entry* entry, NativeHandle handle) {
  if (entry->kind == Kind::kUnknown) {
    int type = SOCK_STREAM;
    socklen_t size = sizeof(type);
    ::getsockopt(static_cast<int>(handle), SOL_SOCKET, SO_TYPE, &type, &size);
    entry->kind = type == SOCK_STREAM ? Kind::kStream : Kind::kMessages;
  }
  return entry->kind == Kind::kMessages;
}

void IoUringPoller::SubmitPoll(Operation* op, bool to_write) {
  uring::Sqe* sqe = NextSqe();
  if (sqe == nullptr) return MarkDirty(op->handle, entries_.Find(op->handle));
  sqe->opcode = uring::kOpPollAdd;
  sqe->fd = static_cast<int>(op->handle);
  sqe->op_flags = to_write ? POLLOUT : POLLIN;
  sqe->user_data = Address(op);
  NoteOf(op)->phase = Phase::kInFlight;
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
  if (note->wants_cancel && !note->has_cancel) note->has_cancel = SubmitCancel(Address(op));
  return note->has_cancel == note->wants_cancel;
}

bool IoUringPoller::SubmitCancelOf(Listener* listener) {
  if (!listener->has_cancel) listener->has_cancel = SubmitCancel(Address(listener) | kListenerTag);
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
    NoteOf(op)->phase = Phase::kQueued;
    End(NoteOf(op)->is_orphan ? nullptr : entries_.Find(op->handle), op, SizeOfSend(op), done);
  }
  quiet_.resize(left);
  quiet_bytes_ = 0;
}

void IoUringPoller::OnListener(Listener* listener, int32_t result, uint32_t flags,
                               ReadyQueue* done) {
  if ((flags & uring::kCqeMore) == 0) listener->is_armed = listener->has_cancel = false;
  if (listener->is_orphan) {
    if (result >= 0) CloseNow(result);
    if (listener->is_armed) return;
    for (auto& orphan : orphan_listeners_) {
      if (orphan.get() != listener) continue;
      std::swap(orphan, orphan_listeners_.back());
      return orphan_listeners_.pop_back();
    }
    return;
  }
  Entry* entry = entries_.Find(listener->handle);
  if (result >= 0) result = internal::AboveStandardStreams(result);
  if (result >= 0) {
    // A number that the kernel has just given out cannot be in use: whatever we know of
    // it is about a file that was closed without our knowledge.
    Entry* stale = entries_.Find(result);
    if (stale != nullptr) Abandon(stale);
    if (listener->is_orphan) return CloseNow(result);  // It was our own number.
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
      End(entry, op, result, done);
    } else if (result >= 0) {
      try {
        listener->accepted.push_back(result);
      } catch (const std::bad_alloc&) {
        CloseNow(result);
      }
    }
  }
  if (listener->is_armed) return;
  if (entry->retiring != nullptr) return FinishRetirement(entry, done);
  if (!entry->queue[kRead].empty()) MarkDirty(listener->handle, entry);
}

void IoUringPoller::OnOperation(Operation* op, int32_t result, uint32_t flags, ReadyQueue* done) {
  Note* note = NoteOf(op);
  Entry* entry = note->is_orphan ? nullptr : entries_.Find(op->handle);
  note->phase = Phase::kQueued;
  if (std::exchange(note->is_quiet, false)) *std::find(quiet_.begin(), quiet_.end(), op) = nullptr;
  const bool goes_on = !note->wants_cancel && entry != nullptr;
  const bool was_polling = std::exchange(note->is_polling, false);

  if (ABSL_PREDICT_FALSE(result < 0)) {
    // Nobody has asked for that: a signal, or the thread that submitted it has ended.
    if (goes_on && (result == -EINTR || result == -ECANCELED)) {
      if (op->opcode == OpCode::kConnect) note->is_performed = true;  // It may be under way.
      return Again(entry, op);
    }
    if (result == -EINTR) result = -ECANCELED;
  }
  if (entry == nullptr && result == -ECANCELED) result = -EBADF;
  if (was_polling) {
    if (result < 0) return End(entry, op, result, done);
    if (!goes_on) return End(entry, op, -ECANCELED, done);
    if (!note->is_performed) return Again(entry, op);
    const int64_t performed = PerformNow(op);
    if (performed != kWouldBlock) return End(entry, op, performed, done);
    note->is_polling = true;
    return Again(entry, op);
  }

  switch (op->opcode) {
    case OpCode::kWaitReadable:
      return EndWaits(entry, op, std::min(result, 0), done);
    case OpCode::kWaitWritable:
      return EndWaits(entry, op, std::min(result, 0), &late_);
    case OpCode::kRecvLent: {
      if (result == -ENOBUFS && goes_on) {
        buffers_.OnStarved();
        entry->maybe_more = true;
        Starve(op->handle, entry);
        return;
      }
      const int64_t lent = OnLent(entry, op, result, flags);
      if (lent != kWouldBlock) return End(entry, op, lent, done);
      note->is_polling = true;
      return Again(entry, op);
    }
    case OpCode::kRecv:
      if (entry != nullptr) entry->maybe_more = (flags & uring::kCqeSockNonempty) != 0;
      break;
    case OpCode::kRecvMsg:
      if (result >= 0) {
        if (op->address != nullptr) op->address->length = note->header->msg_namelen;
        op->control_size = static_cast<uint32_t>(note->header->msg_controllen);
        op->message_flags = note->header->msg_flags;
      }
      break;
    case OpCode::kWrite:
      if (op->offset < 0 && goes_on && (result == -EOPNOTSUPP || result == -EINVAL)) {
        // An old kernel, or a file that does not know the flag, which only makes us slower.
        has_no_signal_ = has_no_signal_ && result != -EOPNOTSUPP;
        note->is_performed = true;
        return Again(entry, op);
      }
      break;
    default:
      break;
  }
  // It would have had to wait, and was told not to, or cannot by itself.
  if (result == -EAGAIN && op->opcode != OpCode::kConnect) {
    if (!goes_on) return End(entry, op, -ECANCELED, done);
    const bool is_send = op->opcode == OpCode::kSend || op->opcode == OpCode::kSendMsg;
    note->is_polling = !is_send || KeepsMessages(entry, op->handle);
    note->was_tried = true;
    return Again(entry, op);
  }
  End(entry, op, result, done);
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
    if (result != -ECANCELED && result != -ENOBUFS) entry->bank_error = result;
  } else {
    entry->maybe_more = (flags & uring::kCqeSockNonempty) != 0;
    entry->bank = block;
    entry->bank_begin = 0;
    entry->bank_end = static_cast<uint32_t>(result);
  }
  // There is no next.
  const bool is_kept = entry->retiring != nullptr && (entry->retiring->flags & kKeepOpen) != 0;
  if (is_kept && entry->bank != nullptr && !entry->has_lent) {
    Announce(entry, op);
    return 0;
  }
  // One that was cancelled too late leaves what has come to the next.
  if (NoteOf(op)->wants_cancel || result == -ECANCELED || result == -ENOBUFS) return -ECANCELED;
  Announce(entry, op);
  return 0;
}

// To be submitted once more.
void IoUringPoller::Again(Entry* entry, Operation* op) {
  NoteOf(op)->has_cancel = false;
  MarkDirty(op->handle, entry);
}

// Ends an operation that is not in flight; what waits behind it comes next.
void IoUringPoller::End(Entry* entry, Operation* op, int64_t result, ReadyQueue* done) {
  if (entry != nullptr && entry->retiring != nullptr) {
    op->result = result;
    NoteOf(op)->phase = Phase::kEnded;
    return FinishRetirement(entry, done);
  }
  op->Unlink();
  Finish(op, result, done);
  if (entry == nullptr || IsWait(op)) return;
  // Also if nobody accepts any more: the listener has to be told.
  if (!entry->queue[DirectionOf(op->opcode)].empty() || entry->listener != nullptr) {
    MarkDirty(op->handle, entry);
  }
}

// Ends a wait that was in flight, and those that wait for the same, in their order: each
// asked for by itself would be answered in the kernel's, which is another.
void IoUringPoller::EndWaits(Entry* entry, Operation* op, int64_t result, ReadyQueue* done) {
  const OpCode opcode = op->opcode;
  const NativeHandle handle = op->handle;
  End(entry, op, result, done);
  if (entry == nullptr || entry->retiring != nullptr || entry->waits.empty()) return;
  MarkDirty(handle, entry);  // For those that are left.
  if (result < 0) return;
  for (Operation* next = entry->waits.front(); next != nullptr;) {
    Operation* each = std::exchange(next, entry->waits.Next(next));
    if (each->opcode == opcode && NoteOf(each)->phase == Phase::kQueued) {
      End(entry, each, 0, done);
    }
  }
}

void IoUringPoller::Finish(Operation* op, int64_t result, ReadyQueue* done) {
  FreeHeader(op);
  op->result = result;
  op->state = Operation::State::kDone;
  --pending_;
  done->PushBack(op);
}

void IoUringPoller::FreeHeader(Operation* op) {
  if (op->opcode != OpCode::kSendMsg && op->opcode != OpCode::kRecvMsg) return;
  msghdr* header = std::exchange(NoteOf(op)->header, nullptr);
  if (header != nullptr) internal::FreeBlock(header, sizeof(msghdr));
}

// --- Ending ---

void IoUringPoller::Cancel(Operation* op) {
  if (op->state == Operation::State::kPending) {
    if (op->opcode == OpCode::kRetire || NoteOf(op)->is_orphan) return;  // On its way.
    Entry* entry = entries_.Find(op->handle);
    if (DirectionOf(op->opcode) == kWrite) TryWrites(entry, &ended_);
    if (op->state == Operation::State::kPending) CancelPending(entry, op);
    return;
  }
  if (op->opcode != OpCode::kRecvLent || op->state != Operation::State::kDone) return;
  Note* note = NoteOf(op);
  if (!std::exchange(note->is_unfetched, false)) return;
  op->result = -ECANCELED;
  Entry* entry = entries_.Find(op->handle);
  if (entry->generation != note->generation) return;
  // What has come stays there.
  entry->has_lent = false;
  if (!entry->queue[kRead].empty()) MarkDirty(op->handle, entry);
}

void IoUringPoller::CancelPending(Entry* entry, Operation* op) {
  Note* note = NoteOf(op);
  switch (note->phase) {
    case Phase::kQueued:
      return End(entry, op, -ECANCELED, &ended_);
    case Phase::kInFlight:
      note->wants_cancel = true;
      MarkDirty(op->handle, entry);
      return;
    case Phase::kEnded:
      return;
  }
}

// Who writes does not expect that it was kept back for the next system call. So what
// the kernel has not seen yet is done now, as far as that goes without waiting.
void IoUringPoller::TryWrites(Entry* entry, ReadyQueue* done) {
  while (Operation* op = entry->queue[kWrite].front()) {
    Note* note = NoteOf(op);
    if (note->phase != Phase::kQueued || note->was_tried || note->is_polling) return;
    if (op->opcode == OpCode::kConnect || op->opcode == OpCode::kFsync) return;
    const int64_t result = internal::Perform(op);
    note->was_tried = true;
    if (result == kWouldBlock) return;
    End(entry, op, result, done);
  }
}

void IoUringPoller::CancelAll() {
  entries_.ForEach([this](NativeHandle, Entry* entry) {
    if (entry->retiring != nullptr) return;
    TryWrites(entry, &ended_);
    for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
      for (Operation* op = list->front(); op != nullptr;) {
        Operation* next = list->Next(op);
        CancelPending(entry, op);
        op = next;
      }
    }
  });
}

bool IoUringPoller::HasInFlight(Entry* entry) const {
  if (entry->listener != nullptr && entry->listener->is_armed) return true;
  for (Direction direction : {kRead, kWrite}) {
    Operation* op = entry->queue[direction].front();
    if (op != nullptr && NoteOf(op)->phase == Phase::kInFlight) return true;
  }
  for (Operation* op = entry->waits.front(); op != nullptr; op = entry->waits.Next(op)) {
    if (NoteOf(op)->phase == Phase::kInFlight) return true;
  }
  return false;
}

StartResult IoUringPoller::Retire(Operation* op) {
  Entry* entry = entries_.Find(op->handle);
  if (entry == nullptr || entry->retiring != nullptr) {
    op->result = -EBADF;
    if (entry == nullptr && op->handle >= 0 && op->handle <= INT_MAX) {
      op->result = (op->flags & kKeepOpen) != 0 ? 0 : internal::Close(op->handle);
    }
    op->state = Operation::State::kDone;
    ended_.PushBack(op);
    return StartResult::kPending;
  }
  TryWrites(entry, &ended_);
  if ((op->flags & kKeepOpen) == 0) {
    ++entry->generation;  // What was announced and not fetched is gone.
    entry->has_lent = false;
  }
  if (!HasInFlight(entry)) {
    EndAll(entry, &ended_);
    CloseEntry(entry, op);
    op->state = Operation::State::kDone;
    ended_.PushBack(op);
    return StartResult::kPending;
  }
  for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
    for (Operation* each = list->front(); each != nullptr; each = list->Next(each)) {
      NoteOf(each)->wants_cancel = true;
    }
  }
  entry->retiring = op;
  Pending(op);
  MarkDirty(op->handle, entry);
  if (entry->listener != nullptr && entry->listener->is_armed) FlushNow();
  return StartResult::kPending;
}

// Ends what is not in flight, oldest first. REQUIRES: nothing is.
void IoUringPoller::EndAll(Entry* entry, ReadyQueue* done) {
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

void IoUringPoller::FinishRetirement(Entry* entry, ReadyQueue* done) {
  if (HasInFlight(entry)) return;
  Operation* op = std::exchange(entry->retiring, nullptr);
  EndAll(entry, done);
  CloseEntry(entry, op);
  Finish(op, op->result, done);
}

// The handle is nobody's any more; `op->result` says what close said.
void IoUringPoller::CloseEntry(Entry* entry, Operation* op) {
  entry->was_kept = (op->flags & kKeepOpen) != 0 && entry->has_bank();
  if (entry->was_kept) {
    entry->file = FileOf(op->handle);
  } else {
    FreeBank(entry);
    if (std::exchange(entry->has_lent, false)) ++entry->generation;
  }
  DropListener(entry);
  entry->maybe_more = true;
  entry->kind = Kind::kUnknown;
  if (op->handle < 0) {
    op->result = -EBADF;
  } else {
    op->result = (op->flags & kKeepOpen) != 0 ? 0 : internal::Close(op->handle);
  }
}

void IoUringPoller::DropListener(Entry* entry) {
  if (entry->listener == nullptr) return;
  entry->listener->CloseAccepted();
  entry->listener.reset();
}

// The number does not stand for the file any more that we knew by it.
void IoUringPoller::Abandon(Entry* entry) {
  if (entry->listener != nullptr && entry->listener->is_armed) {
    entry->listener->is_orphan = true;
    entry->listener->CloseAccepted();
    orphan_listeners_.push_back(std::move(entry->listener));
    has_orphans_to_cancel_ = true;
  }
  DropListener(entry);
  for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
    for (Operation* op = list->front(); op != nullptr;) {
      Operation* next = list->Next(op);
      op->Unlink();
      if (NoteOf(op)->phase == Phase::kInFlight) {
        NoteOf(op)->wants_cancel = NoteOf(op)->is_orphan = true;
        orphans_.PushBack(op);
        has_orphans_to_cancel_ = true;
      } else {
        Finish(op, -EBADF, &ended_);
      }
      op = next;
    }
  }
  FreeBank(entry);
  ++entry->generation;
  entry->has_lent = false;
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
  if (failed == 0 && event_fd_ >= 0) {
    failed = ring_.Register(uring::kRegisterEventfd, &event_fd_, 1);
  }
  if (failed != 0) {
    ring_.Close();
    return failed;
  }
  waker_->Open();  // When a server has used up its descriptors, it is too late for it.
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

template <class Fn>
void IoUringPoller::ForEachInFlight(Fn fn) {
  entries_.ForEach([&](NativeHandle handle, Entry* entry) {
    for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
      for (Operation* op = list->front(); op != nullptr;) {
        Operation* next = list->Next(op);
        if (NoteOf(op)->phase == Phase::kInFlight) fn(handle, entry, op);
        op = next;
      }
    }
  });
}

// Without one it works just as well, on this thread.
void IoUringPoller::HoldPipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) < 0) return;
  int error = ring_.Register(uring::kRegisterFiles, &fds[1], 1);
  if (error == -EEXIST) {
    error = MoveHere();
    if (error == 0) error = ring_.Register(uring::kRegisterFiles, &fds[1], 1);
  }
  ::close(fds[1]);
  if (error == 0) {
    freed_fd_ = fds[0];
  } else {
    ::close(fds[0]);
  }
}

// Until the ring that was closed is freed. A child process that was forked and has not
// executed anything keeps it; so there is an end to patience.
int IoUringPoller::WaitForWorkers() {
  constexpr int kPatienceMilliseconds = 30'000;
  pollfd entry = {freed_fd_, 0, 0};
  int count;
  do {
    count = ::poll(&entry, 1, kPatienceMilliseconds);
  } while (count < 0 && errno == EINTR);
  return count == 1 ? 0 : -EXDEV;
}

// The loop runs on another thread than before. Its ring can be closed from here, which
// ends what is in flight before it has done anything; all of that is asked of a new
// ring. Only what workers of the kernel are at has to be waited for. How that ended
// nobody can tell; but to do it once more does no harm, unless it is to append.
int IoUringPoller::MoveHere() {
  Reap(&ended_);
  const uint32_t submitted = submissions_ - ring_.unsubmitted();
  bool has_workers = false;
  const auto look = [&](Operation* op) {
    if (!IsForWorkers(op)) return;
    has_workers |= static_cast<int32_t>(submitted - NoteOf(op)->place) >= 0;
  };
  ForEachInFlight([&](NativeHandle, Entry*, Operation* op) { look(op); });
  for (Operation* op = orphans_.front(); op != nullptr; op = orphans_.Next(op)) look(op);
  if (has_workers && freed_fd_ < 0) return -EXDEV;
  ring_.Close();
  const int error = has_workers ? WaitForWorkers() : 0;
  if (freed_fd_ >= 0) ::close(std::exchange(freed_fd_, -1));
  if (error != 0) return error;
  for (Operation* op : quiet_) {
    if (op != nullptr) NoteOf(op)->is_quiet = false;
  }
  quiet_.clear();
  while (Operation* op = orphans_.PopFront()) Finish(op, -ECANCELED, &ended_);
  orphan_listeners_.clear();
  ForEachInFlight([this](NativeHandle handle, Entry* entry, Operation* op) {
    Note* note = NoteOf(op);
    note->phase = Phase::kQueued;
    note->is_polling = note->has_cancel = false;
    if (op->opcode == OpCode::kConnect) note->is_performed = true;
    if (note->wants_cancel) {
      End(entry, op, -ECANCELED, &ended_);
    } else if (IsForWorkers(op) && op->opcode == OpCode::kWrite &&
               (::fcntl(static_cast<int>(handle), F_GETFL) & O_APPEND) != 0) {
      End(entry, op, -EIO, &ended_);
    } else {
      MarkDirty(handle, entry);
    }
  });
  entries_.ForEach([this](NativeHandle handle, Entry* entry) {
    if (entry->listener == nullptr || !entry->listener->is_armed) return;
    entry->listener->is_armed = entry->listener->has_cancel = false;
    MarkDirty(handle, entry);
    if (entry->retiring != nullptr) FinishRetirement(entry, &ended_);
  });
  return Open();
}

absl::Status IoUringPoller::Wait(TimePoint deadline, ReadyQueue* done) {
  Collect(done);
  bool may_sleep = done->empty() && deadline.nanoseconds() > 0;
  // Nothing can have come.
  if (!ring_.is_open() && !may_sleep && dirty_.first == kNobody) return absl::OkStatus();
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
    if (was_woken_ || !ended_.empty() || ring_.Peek() != nullptr || starved_.first != kNobody ||
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

// Not the ring's own descriptor: of a ring that defers, nothing is complete before
// our call. An eventfd is told when there is something to call for; but not when
// another eventfd was the reason (seen on 6.18), so the waker's is watched as well.
NativeHandle IoUringPoller::BackendFd() {
  if (outer_fd_ >= 0) return outer_fd_;
  if (OpenToSleep() != 0) return kInvalidHandle;
  const int outer = ::epoll_create1(EPOLL_CLOEXEC);
  int event_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  epoll_event event = {.events = EPOLLIN, .data = {}};
  epoll_event wake = {.events = EPOLLIN | EPOLLET, .data = {}};  // Nobody reads it.
  if (outer < 0 || event_fd < 0 || timer < 0 ||
      ::epoll_ctl(outer, EPOLL_CTL_ADD, event_fd, &event) < 0 ||
      ::epoll_ctl(outer, EPOLL_CTL_ADD, timer, &event) < 0 ||
      ::epoll_ctl(outer, EPOLL_CTL_ADD, waker_->Open(), &wake) < 0 ||
      ring_.Register(uring::kRegisterEventfd, &event_fd, 1) != 0) {
    for (int fd : {outer, event_fd, timer}) {
      if (fd >= 0) ::close(fd);
    }
    return kInvalidHandle;
  }
  outer_fd_ = outer;
  event_fd_ = event_fd;
  timer_fd_ = timer;
  ArmBackend(TimePoint::InfiniteFuture());
  return outer_fd_;
}

void IoUringPoller::ArmBackend(TimePoint deadline) {
  if (outer_fd_ < 0) return;
  if (dirty_.first != kNobody || ring_.unsubmitted() > 0) FlushNow();
  uint64_t count;
  static_cast<void>(!::read(event_fd_, &count, sizeof(count)));
  epoll_event reported[3];
  ::epoll_wait(outer_fd_, reported, 3, 0);               // Takes the wakes up to now.
  const TimePoint past = TimePoint::FromNanoseconds(1);  // Zero would disarm.
  const bool is_due = !ended_.empty() || dirty_.first != kNobody || starved_.first != kNobody ||
                      failed_ != 0 || ring_.Peek() != nullptr || ring_.MustEnter() || was_woken_ ||
                      deadline < past;
  const TimePoint moment = is_due ? past : deadline;
  itimerspec when = {};
  if (moment != TimePoint::InfiniteFuture()) {
    when.it_value.tv_sec = static_cast<time_t>(moment.nanoseconds() / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(moment.nanoseconds() % 1'000'000'000);
  }
  ::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

IoUringPoller::~IoUringPoller() {
  if (ring_.is_open() && ring_.is_ours()) {
    // The kernel has to let go of what it has; nobody is told.
    CancelAll();
    ReadyQueue done;
    while (pending_ > 0 && Wait(TimePoint::InfiniteFuture(), &done).ok()) {
    }
    Collect(&done);
    done.Clear();
    // Whom it accepted for nobody.
    while (const uring::Cqe* cqe = ring_.Peek()) {
      if ((cqe->user_data & kTagMask) == kListenerTag && cqe->res >= 0) CloseNow(cqe->res);
      ring_.Pop();
    }
  }
  ring_.Close();
  const auto drop = [this](List<Operation>* list) {
    while (Operation* op = list->PopFront()) {
      FreeHeader(op);
      op->result = -ECANCELED;
      op->state = Operation::State::kDone;
      --pending_;
    }
  };
  entries_.ForEach([&](NativeHandle, Entry* entry) {
    for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
      drop(list);
    }
    FreeBank(entry);
    DropListener(entry);
  });
  drop(&orphans_);
  for (int fd : {freed_fd_, outer_fd_, event_fd_, timer_fd_}) {
    if (fd >= 0) ::close(fd);
  }
}

}  // namespace

std::unique_ptr<Poller> MakeIoUringPoller() {
  return std::make_unique<IoUringPoller>(IoUringPollerOptions());
}

std::unique_ptr<Poller> internal::MakeIoUringPollerWith(const IoUringPollerOptions& options) {
  return std::make_unique<IoUringPoller>(options);
}

}  // namespace weft
