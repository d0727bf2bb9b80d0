// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What has to hold, and why nothing is lost:
//
// In edge mode, where somebody is parked, the direction is known not to be ready
// (`!maybe`), or one is announced and not fetched (`has_lent`), or the entry is
// kicked. `maybe` becomes false only by the kernel's word: it said EAGAIN, or it
// returned less of a TCP stream than was asked for. Whatever arrives after that
// word is a change, and epoll(7) and kqueue(2) report every change: also one that
// happens while older reports are being served. So a direction that is not ready
// needs no system call to park, and a report is never missed for having come
// early.
//
// A short read means "drained" only on TCP. Elsewhere a read ends at a boundary:
// of a datagram, of a passed descriptor on a Unix socket, of a line on a terminal.
// On TCP it ends early at urgent data, and in front of a FIN that came in the same
// report. Both are reported as exceptional, and remembered.
//
// In level mode nothing is remembered: the kernel repeats itself.

#include "weft/poller/readiness_table.h"

#include <cerrno>
#include <climits>
#include <new>

#include "absl/base/macros.h"
#include "absl/base/optimization.h"
#include "weft/poller/perform_posix.h"
#include "weft/poller/would_block.h"

namespace weft::internal {

ReadinessTable::~ReadinessTable() {
  entries_.ForEach([this](NativeHandle, Entry* entry) {
    for (List<Operation>& parked : entry->parked) {
      while (Operation* op = parked.PopFront()) {
        op->result = -ECANCELED;
        op->state = Operation::State::kDone;
        --*pending_;
      }
    }
  });
}

StartResult ReadinessTable::Start(Operation* op) {
  ABSL_HARDENING_ASSERT(op->state != Operation::State::kPending && !op->is_linked());
  new (op->backend) Note{next_sequence_++, 0, false, false};
  if (op->opcode == OpCode::kRetire) return Retire(op);
  if (ABSL_PREDICT_FALSE(op->handle < 0 || op->handle > INT_MAX)) return Done(op, -EBADF);
  if (IsWait(op)) return StartWait(op);
  if (op->opcode == OpCode::kRecvLent) return StartLent(op);

  const Direction direction = DirectionOf(op->opcode);
  Entry* entry = entries_.Find(op->handle);
  if (entry != nullptr && MustWait(*entry, direction)) return WatchAndPark(entry, op);
  const int64_t result = Attempt(op);
  if (result != kWouldBlock) {
    if (entry != nullptr && op->opcode == OpCode::kRecv) {
      Learn(entry, *op, result, op->buffer.size);
    }
    return Done(op, result);
  }
  int64_t error = 0;
  entry = entries_.Get(op->handle, &error);
  if (entry == nullptr) return Done(op, error);
  const StartResult started = WatchAndPark(entry, op);
  entry->maybe[direction] = false;
  return started;
}

StartResult ReadinessTable::StartLent(Operation* op) {
  int64_t error = 0;
  Entry* entry = entries_.Get(op->handle, &error);
  if (entry == nullptr) return Done(op, error);
  if (MustWait(*entry, kRead)) return WatchAndPark(entry, op);
  Announce(entry, op);
  return Done(op, 0);
}

StartResult ReadinessTable::StartWait(Operation* op) {
  const Direction direction = DirectionOf(op->opcode);
  const bool again = (op->flags & kWaitAgain) != 0;
  int64_t error = 0;
  Entry* entry = entries_.Get(op->handle, &error);
  if (entry == nullptr) return Done(op, error);

  if (entry->mode == Mode::kEdge) {
    // A change is reported once, and may have been: only the state counts.
    const int ready = IsReady(op->handle, direction == kWrite);
    if (ready != 0) return Done(op, ready < 0 ? ready : 0);
    if (!again) error = source_->Watch(op->handle, entry->generation, {.edge = true}, true);
    if (error == 0) {
      entry->maybe[direction] = false;
      return Park(entry, op);
    }
    Abandon(entry);
    if (error != -ENOENT) return Done(op, error);
  }
  if (!again || entry->mode != Mode::kLevel || (entry->level & Bit(direction)) == 0) {
    error = WatchLevels(op->handle, entry, direction);
    if (error != 0) return Done(op, error);
  }
  return Park(entry, op);
}

StartResult ReadinessTable::Retire(Operation* op) {
  int64_t result = 0;
  if (Entry* entry = entries_.Find(op->handle)) {
    // Deregistered while the number still stands for the file: if that has been
    // duplicated, closing would not do it (epoll(7), Q6).
    if (entry->mode != Mode::kUnwatched) source_->Forget(op->handle);
    EndParked(entry, -ECANCELED);
    Reset(entry);
  }
  if (op->handle < 0 || op->handle > INT_MAX) {
    result = -EBADF;
  } else if ((op->flags & kKeepOpen) == 0) {
    result = Close(op->handle);
  }
  op->result = result;
  op->state = Operation::State::kDone;
  ended_->PushBack(op);
  return StartResult::kPending;
}

void ReadinessTable::Cancel(Operation* op) {
  if (op->state == Operation::State::kPending) {
    op->Unlink();
    Finish(op, -ECANCELED, ended_);
    Entry* entry = entries_.Find(op->handle);
    if (entry->mode == Mode::kLevel && WaitingBits(*entry) == 0) Narrow(op->handle, entry);
    return;
  }
  if (op->opcode != OpCode::kRecvLent || op->state != Operation::State::kDone) return;
  if (!NoteOf(op)->is_unfetched) return;
  op->result = -ECANCELED;
  if (Entry* entry = TakeTurn(op)) KickIfWaiting(entry);
}

void ReadinessTable::CancelAll() {
  entries_.ForEach([this](NativeHandle, Entry* entry) { EndParked(entry, -ECANCELED); });
}

StartResult ReadinessTable::FetchLent(Operation* op, SlabPool* pool, Slab* slab) {
  slab->Reset();
  ABSL_HARDENING_ASSERT(op->state == Operation::State::kDone && op->opcode == OpCode::kRecvLent);
  if (!NoteOf(op)->is_unfetched) return StartResult::kDone;  // Cancelled while it was parked.
  Entry* entry = TakeTurn(op);
  if (entry == nullptr) return Done(op, -ECANCELED);  // Retired since it was announced.

  Slab block = pool->Take();
  int64_t result = -ENOMEM;
  if (block) {
    result = (op->flags & kAnyFile) != 0 ? Read(op->handle, block.data(), block.size())
                                         : Receive(op->handle, block.data(), block.size(), 0);
  }
  if (result == kWouldBlock) {
    const StartResult parked = WatchAndPark(entry, op, /*in_front=*/true);
    entry->maybe[kRead] = false;
    return parked;
  }
  Learn(entry, *op, result, block.size());
  KickIfWaiting(entry);
  if (result > 0) *slab = std::move(block);
  return Done(op, result);
}

bool ReadinessTable::Report(NativeHandle handle, uint32_t generation, Readiness readiness,
                            ReadyQueue* done) {
  Entry* entry = entries_.Find(handle);
  if (entry == nullptr || entry->generation != generation || entry->mode == Mode::kUnwatched) {
    return false;
  }
  if (entry->mode == Mode::kLevel) {
    bool anyone = false;
    if (readiness.readable) anyone |= FinishWaits(entry, kRead, done);
    if (readiness.writable) anyone |= FinishWaits(entry, kWrite, done);
    return anyone || Narrow(handle, entry);
  }
  if (readiness.is_exceptional) entry->saw_exceptional = true;
  if (readiness.readable) {
    entry->maybe[kRead] = true;
    if (!entry->parked[kRead].empty()) Serve(handle, entry, kRead, done);
  }
  if (readiness.writable) {
    entry->maybe[kWrite] = true;
    if (!entry->parked[kWrite].empty()) Serve(handle, entry, kWrite, done);
  }
  return true;
}

void ReadinessTable::ServeKicked(ReadyQueue* done) {
  // Whoever is kicked meanwhile has its turn in the next one.
  const Entry* const last = kicked_.back();
  while (Entry* entry = kicked_.Pop()) {
    if (entry->mode == Mode::kEdge) {
      for (Direction direction : {kRead, kWrite}) {
        const Operation* op = entry->parked[direction].front();
        if (op != nullptr && entry->maybe[direction]) Serve(op->handle, entry, direction, done);
      }
    }
    if (entry == last) return;
  }
}

void ReadinessTable::Lose(NativeHandle handle, uint32_t generation) {
  Entry* entry = entries_.Find(handle);
  if (entry != nullptr && entry->generation == generation) Abandon(entry);
}

Interest ReadinessTable::WaitingFor(NativeHandle handle) const {
  const Entry* entry = entries_.Find(handle);
  // Where it may be ready though somebody is parked, an announcement is to be
  // fetched, or a kick to be served.
  const auto waits = [entry](Direction direction) {
    return !entry->maybe[direction] && !entry->parked[direction].empty();
  };
  return {.edge = false, .read = waits(kRead) && !entry->has_lent, .write = waits(kWrite)};
}

void ReadinessTable::WatchAgain() {
  entries_.ForEach([this](NativeHandle handle, Entry* entry) {
    if (entry->mode == Mode::kUnwatched) return;
    const Interest interest = {.edge = entry->mode == Mode::kEdge,
                               .read = (entry->level & Bit(kRead)) != 0,
                               .write = (entry->level & Bit(kWrite)) != 0};
    if (source_->Watch(handle, entry->generation, interest, /*is_known=*/false) != 0) {
      Abandon(entry);
    }
  });
}

// --- Small things ---

ReadinessTable::Note* ReadinessTable::NoteOf(Operation* op) {
  static_assert(sizeof(Note) <= Operation::kBackendBytes && alignof(Note) <= 8);
  return std::launder(reinterpret_cast<Note*>(op->backend));
}

uint8_t ReadinessTable::WaitingBits(const Entry& entry) {
  uint8_t bits = 0;
  for (Direction direction : {kRead, kWrite}) {
    if (!entry.parked[direction].empty()) bits |= Bit(direction);
  }
  return bits;
}

// Whether an operation has to park behind others, or because trying is in vain.
bool ReadinessTable::MustWait(const Entry& entry, Direction direction) {
  if (direction == kRead && entry.has_lent) return true;
  return entry.mode == Mode::kEdge && (!entry.maybe[direction] || !entry.parked[direction].empty());
}

StartResult ReadinessTable::Done(Operation* op, int64_t result) {
  op->result = result;
  op->state = Operation::State::kDone;
  return StartResult::kDone;
}

// The handle is watched; the invariant above is the caller's to keep.
StartResult ReadinessTable::Park(Entry* entry, Operation* op, bool in_front) {
  List<Operation>& parked = entry->parked[DirectionOf(op->opcode)];
  if (in_front) {
    parked.PushFront(op);
  } else {
    parked.PushBack(op);
  }
  op->state = Operation::State::kPending;
  ++*pending_;
  return StartResult::kPending;
}

StartResult ReadinessTable::WatchAndPark(Entry* entry, Operation* op, bool in_front) {
  const int error = WatchEdges(op->handle, entry);
  return error == 0 ? Park(entry, op, in_front) : Done(op, error);
}

// Ends an operation that was parked, and is out of its list.
void ReadinessTable::Finish(Operation* op, int64_t result, ReadyQueue* done) {
  op->result = result;
  op->state = Operation::State::kDone;
  --*pending_;
  done->PushBack(op);
}

// --- Watching ---

int ReadinessTable::WatchEdges(NativeHandle handle, Entry* entry) {
  if (entry->mode == Mode::kEdge) return 0;
  const bool is_known = entry->mode == Mode::kLevel;
  int error = source_->Watch(handle, entry->generation, {.edge = true}, is_known);
  if (error == -ENOENT && is_known) {
    Abandon(entry);
    error = source_->Watch(handle, entry->generation, {.edge = true}, /*is_known=*/false);
  }
  if (error != 0) return error;
  entry->mode = Mode::kEdge;
  entry->level = 0;
  entry->kind = IsTcp(handle) ? Kind::kTcp : Kind::kOther;
  entry->maybe[kRead] = entry->maybe[kWrite] = true;
  entry->saw_exceptional = false;
  return 0;
}

// Adds `direction` to the states that are watched. This is also where it is found
// out that a number was closed without our knowledge, and has come back for
// another file: the kernel does not know the pair of both (-ENOENT).
int ReadinessTable::WatchLevels(NativeHandle handle, Entry* entry, Direction direction) {
  for (int attempt = 0;; ++attempt) {
    const uint8_t bits = WaitingBits(*entry) | Bit(direction);
    const Interest interest = {
        .edge = false, .read = (bits & Bit(kRead)) != 0, .write = (bits & Bit(kWrite)) != 0};
    const bool is_known = entry->mode == Mode::kLevel;
    const int error = source_->Watch(handle, entry->generation, interest, is_known);
    if (error == 0) {
      entry->mode = Mode::kLevel;
      entry->level = bits;
      return 0;
    }
    if (is_known) Abandon(entry);
    if (error != -ENOENT || !is_known || attempt > 0) return error;
  }
}

// Watches no more than somebody waits for. False if the kernel goes on reporting.
bool ReadinessTable::Narrow(NativeHandle handle, Entry* entry) {
  const uint8_t bits = WaitingBits(*entry);
  if (bits == 0) {
    entry->mode = Mode::kUnwatched;
    entry->level = 0;
    return source_->Forget(handle);
  }
  const Interest interest = {
      .edge = false, .read = (bits & Bit(kRead)) != 0, .write = (bits & Bit(kWrite)) != 0};
  entry->level = bits;
  if (source_->Watch(handle, entry->generation, interest, /*is_known=*/true) == 0) return true;
  Abandon(entry);
  return false;
}

// Ends what is parked, oldest first.
void ReadinessTable::EndParked(Entry* entry, int64_t result) {
  while (true) {
    Operation* read = entry->parked[kRead].front();
    Operation* write = entry->parked[kWrite].front();
    if (read == nullptr && write == nullptr) return;
    const bool read_first =
        write == nullptr || (read != nullptr && NoteOf(read)->sequence < NoteOf(write)->sequence);
    Operation* first = read_first ? read : write;
    first->Unlink();
    Finish(first, result, ended_);
  }
}

// The registration is over: its events and announcements count no more.
void ReadinessTable::Reset(Entry* entry) {
  ++entry->generation;
  entry->mode = Mode::kUnwatched;
  entry->level = 0;
  entry->has_lent = false;
}

// The number does not stand for the file any more that was watched.
void ReadinessTable::Abandon(Entry* entry) {
  EndParked(entry, -EBADF);
  Reset(entry);
}

// --- Serving ---

// Tries `op` once, or its second half.
int64_t ReadinessTable::Attempt(Operation* op) {
  Note* note = NoteOf(op);
  if (note->is_connecting) return FinishConnect(op->handle);
  const int64_t result = Perform(op);
  if (op->opcode == OpCode::kConnect && result == kWouldBlock) note->is_connecting = true;
  if (op->opcode == OpCode::kAccept && result >= 0) {
    // A number that the kernel has just given out cannot be in use: whatever we
    // know of it is about a file that was closed without our knowledge.
    Entry* stale = entries_.Find(static_cast<NativeHandle>(result));
    if (stale != nullptr && stale->mode != Mode::kUnwatched) Abandon(stale);
  }
  return result;
}

// What the result of a receive says about what a next one would find.
void ReadinessTable::Learn(Entry* entry, const Operation& op, int64_t result, size_t asked) {
  if (entry->mode != Mode::kEdge || entry->kind != Kind::kTcp || entry->saw_exceptional) return;
  if (op.flags != 0 || result <= 0 || static_cast<size_t>(result) >= asked) return;
  entry->maybe[kRead] = false;
}

// Tries what is parked, in order, until the handle has no more, or has had its
// share.
void ReadinessTable::Serve(NativeHandle handle, Entry* entry, Direction direction,
                           ReadyQueue* done) {
  List<Operation>& parked = entry->parked[direction];
  for (int served = 0; entry->maybe[direction]; ++served) {
    Operation* op = parked.front();
    if (op == nullptr || (direction == kRead && entry->has_lent)) return;
    if (served == kMaxServed) return kicked_.Push(entry);

    int64_t result = 0;
    if (IsWait(op)) {
      const int ready = IsReady(handle, direction == kWrite);
      result = ready == 0 ? kWouldBlock : ready < 0 ? ready : 0;
    } else if (op->opcode == OpCode::kRecvLent) {
      Announce(entry, op);
    } else {
      result = Attempt(op);
    }
    if (result == kWouldBlock) {
      entry->maybe[direction] = false;
      return;
    }
    if (op->opcode == OpCode::kRecv) Learn(entry, *op, result, op->buffer.size);
    op->Unlink();
    Finish(op, result, done);
  }
}

bool ReadinessTable::FinishWaits(Entry* entry, Direction direction, ReadyQueue* done) {
  bool anyone = false;
  while (Operation* op = entry->parked[direction].PopFront()) {
    Finish(op, 0, done);
    anyone = true;
  }
  return anyone;
}

// It is `op`'s turn to receive; until it has, or gives up, others wait.
void ReadinessTable::Announce(Entry* entry, Operation* op) {
  entry->has_lent = true;
  op->message_flags = kWithKernel;
  NoteOf(op)->is_unfetched = true;
  NoteOf(op)->generation = entry->generation;
}

// Ends `op`'s turn; null if the registration has ended before.
ReadinessTable::Entry* ReadinessTable::TakeTurn(Operation* op) {
  Note* note = NoteOf(op);
  note->is_unfetched = false;
  Entry* entry = entries_.Find(op->handle);
  if (entry == nullptr || entry->generation != note->generation) return nullptr;
  entry->has_lent = false;
  return entry;
}

void ReadinessTable::KickIfWaiting(Entry* entry) {
  if (entry->mode == Mode::kEdge && entry->maybe[kRead] && !entry->parked[kRead].empty()) {
    kicked_.Push(entry);
  }
}

}  // namespace weft::internal
