// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_COMPLETION_POLLER_H_
#define WEFT_POLLER_COMPLETION_POLLER_H_

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "absl/base/macros.h"
#include "absl/base/optimization.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/runnable.h"
#include "weft/poller/direction.h"
#include "weft/poller/entry_queue.h"
#include "weft/poller/handle_table.h"
#include "weft/poller/native_handle.h"
#include "weft/poller/operation.h"
#include "weft/poller/poller.h"
#include "weft/poller/slab_pool.h"
#include "weft/poller/would_block.h"

namespace weft::internal {

// In the place of a result, beside `kWouldBlock`: the kernel has been asked, or will be
// when the backend has what it takes, and `End()` will say how it went. Results are greater
// than both.
inline constexpr int64_t kAsked = kWouldBlock + 1;

// What is known of a handle. A backend adds to it what its kernel needs.
struct CompletionEntry {
  // Whether what was announced is here and not the kernel's any more, so that it can be
  // fetched after the handle went back to its owner. A backend whose kernel receives for
  // one who waits without a buffer has one of its own.
  bool holds_lent() const { return false; }

  NativeHandle handle = kInvalidHandle;
  List<Operation> queue[2];  // By direction, in the order of starting.
  List<Operation> waits;     // kWaitReadable, kWaitWritable.
  Operation* retiring = nullptr;
  CompletionEntry* next_dirty = nullptr;
  uint32_t generation = 1;  // Of what is announced.
  uint32_t in_flight = 0;   // Requests that the kernel has.
  bool has_lent = false;    // One is announced and not fetched: others wait.
};

// What is kept in an operation. A backend adds to it, up to `Operation::kBackendBytes`.
struct CompletionNote {
  enum class Phase : uint8_t {
    kQueued,    // To be asked for, or waiting for those before it.
    kInFlight,  // The kernel's.
    kEnded,     // Its result is there, and waits for those before it: in a retirement.
  };

  uint64_t sequence = 0;             // The order of starting.
  CompletionEntry* entry = nullptr;  // Null: its number stands for another file by now.
  uint32_t generation = 0;           // kRecvLent: of the entry, when it was announced.
  Phase phase = Phase::kQueued;
  bool is_unfetched = false;  // kRecvLent: announced, and not fetched.
  bool wants_cancel = false;
  bool has_cancel = false;  // The kernel was told so.
};

// CompletionPoller
//
// What all backends have in common whose kernel does what it is asked, and says when it
// is done: io_uring, IOCP. Here is who is first, who is in flight, and what happens at
// the end; a backend says how its kernel is asked, and what its answers mean.
//
//   struct Entry : CompletionEntry { ... };
//   struct Note : CompletionNote { ... };
//   class MyPoller final : public CompletionPoller<Entry, Note> { ... };
//
// An operation is in a queue of its handle, one for each direction. Only what is first in
// it is asked for, as two requests of one direction may overtake each other in the kernel:
//
//                 Ask()                    End()
//   kQueued ------------------> kInFlight --------> given back, and the next has its turn
//      |      EnterKernel()         |
//      |                            |  LeaveKernel(): not done yet, to be asked again
//      +<---------------------------+
//
// Of those who wait for readable (writable) one is asked for, and says it for all: each
// by itself would be answered in the kernel's order, which is another.
//
// What the backend does in `Wait()`:
//   1. `AskFor()` of all that are marked as dirty, by `PopDirty()`.
//   2. Sleeps, if nothing has ended by then.
//   3. For each answer: `LeaveKernel()`, then `End()`, or `EndWaits()` of a wait; or, if
//      the answer meant nothing, `MarkDirty()`, and it is asked for once more.
//   4. `late_` goes behind all that: writable ones are reported after readable ones.
// Its destructor calls `Drain()`, while `Wait()` is still its own.
//
// Guarantees:
//   * What is in flight stays where it is, and its memory is the kernel's, until
//     `LeaveKernel()`.
//   * A handle is closed when nothing on it is in flight, and then what was pending is
//     given back in the order in which it was started.
//   * No allocation but a page of entries when a higher number than ever is used.
//
// Threads: belongs to the loop's thread.
template <class EntryType, class NoteType, int kShift = 0>
class CompletionPoller : public Poller {
 public:
  StartResult Start(Operation* op) final;
  void Cancel(Operation* op) final;
  void CancelAll() final;
  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) final;

 protected:
  using Entry = EntryType;
  using Note = NoteType;
  using Phase = CompletionNote::Phase;

  // What is pending still is `kDone` with -ECANCELED, and queued nowhere.
  ~CompletionPoller() override;

  // --- What a backend says ---

  // `op` has been started, and is the first of its queue, or a wait: its result if it is
  // done at once or refused, `kAsked`, or `kWouldBlock` if it is to be asked for in
  // `Wait()`; so it is for what receives while something is announced (`has_lent`).
  virtual int64_t Begin(Entry* entry, Operation* op) = 0;

  // Asks the kernel for `op`, which is first: as `Begin()`. `kWouldBlock`: it is to be
  // asked for once more, in the next `Wait()`.
  virtual int64_t Ask(Entry* entry, Operation* op) = 0;

  // Fetches what has been announced to `op`: so many bytes, 0 at the end, a negated errno,
  // or `kWouldBlock` if that was a false alarm. `*slab` is empty, and stays so without bytes.
  virtual int64_t Fetch(Entry* entry, Operation* op, SlabPool* pool, Slab* slab) = 0;

  // Some of what is in flight `wants_cancel`: tells the kernel, now or in `Wait()`. If the
  // entry is retiring, looks at once whether that was all, as far as that can be: somebody
  // may want its port, or wait for the end of the stream.
  virtual void CancelInFlight(Entry* entry) = 0;

  // Before something on this handle is cancelled: what was to be written, and is only
  // asked for in `Wait()`, is done now as far as that goes without waiting. Who writes
  // does not expect that it was kept back.
  virtual void TryWrites(Entry* entry) { static_cast<void>(entry); }

  // The handle is nobody's any more, and nothing of it in flight: closes it, unless its
  // owner `keeps` it, and forgets what was known of the file. Returns what close said.
  // `entry` is null if the handle has never been used here.
  virtual int64_t Close(Entry* entry, NativeHandle handle, bool keeps) = 0;

  // --- What it is told by ---

  static Note* NoteOf(Operation* op) {
    static_assert(sizeof(Note) <= Operation::kBackendBytes && alignof(Note) <= 8);
    return std::launder(reinterpret_cast<Note*>(op->backend));
  }
  static const Note* NoteOf(const Operation* op) { return NoteOf(const_cast<Operation*>(op)); }
  // Null if the number stands for another file by now.
  static Entry* EntryOf(const Operation* op) { return static_cast<Entry*>(NoteOf(op)->entry); }

  // The kernel has it, or has it no more.
  static void EnterKernel(Operation* op);
  static void LeaveKernel(Operation* op);

  // There may be something to ask for.
  void MarkDirty(Entry* entry) { dirty_.Push(entry); }
  bool has_dirty() const { return !dirty_.empty(); }
  // The one that was marked last; null if there is none.
  const CompletionEntry* last_dirty() const { return dirty_.back(); }
  // The one that was marked first, which is so no more; null if there is none.
  Entry* PopDirty() { return static_cast<Entry*>(dirty_.Pop()); }

  // Asks for all that is first. What is done at once goes to `done`.
  void AskFor(Entry* entry, ReadyQueue* done);

  // It is `op`'s turn to fetch; until it has, or gives up, others wait.
  static void Announce(Entry* entry, Operation* op);
  // What was announced is gone.
  static void ForgetLent(Entry* entry);

  // Ends an operation that is not in flight; what waits behind it comes next.
  void End(Operation* op, int64_t result, ReadyQueue* done);
  // The same of a wait, and of those that wait for the same, in their order.
  void EndWaits(Operation* op, int64_t result, ReadyQueue* done);
  // After something other than an operation has left the kernel: `entry` may be retiring,
  // and that was all.
  void FinishRetirement(Entry* entry, ReadyQueue* done);

  // The number does not stand for the file any more that was known by it: gives back what
  // is pending, with -EBADF. REQUIRES: nothing in its lists is in flight.
  void Disown(Entry* entry);

  // In flight, and the kernel has yet to be told that it is to end; null if there is none.
  static Operation* NextToCancel(Entry* entry);

  // Calls `fn(op)`, which may take it out of its list.
  template <class Fn>
  static void ForEachInFlight(Entry* entry, Fn fn);

  // Makes the kernel let go of what it has; nobody is told.
  void Drain();
  void Drop(List<Operation>* list);
  void Finish(Operation* op, int64_t result, ReadyQueue* done);

  HandleTable<Entry, kShift> entries_;
  ReadyQueue late_;  // Writable ones.

 private:
  static bool IsHandle(NativeHandle handle) {
    return handle >= 0 && handle <= INT_MAX && (handle & ((1 << kShift) - 1)) == 0;
  }
  // In the order in which they are told.
  template <class Fn>
  static void ForEachPending(Entry* entry, Fn fn);

  StartResult Done(Operation* op, int64_t result);
  StartResult Pending(Operation* op);
  StartResult Retire(Operation* op);
  void AskForFirst(Entry* entry, List<Operation>* queue, ReadyQueue* done);
  Operation* WaitToAsk(Entry* entry, OpCode opcode);
  void EndAll(Entry* entry, int64_t result, ReadyQueue* done);

  EntryQueue<CompletionEntry, &CompletionEntry::next_dirty> dirty_;
  uint64_t next_sequence_ = 0;
};

// --- Starting ---

template <class Entry, class Note, int kShift>
StartResult CompletionPoller<Entry, Note, kShift>::Start(Operation* op) {
  ABSL_HARDENING_ASSERT(op->state != Operation::State::kPending && !op->is_linked());
  Note* note = new (op->backend) Note;
  note->sequence = next_sequence_++;
  if (op->opcode == OpCode::kRetire) return Retire(op);
  if (ABSL_PREDICT_FALSE(!IsHandle(op->handle))) return Done(op, -EBADF);
  int64_t error = 0;
  Entry* entry = entries_.Get(op->handle, &error);
  if (ABSL_PREDICT_FALSE(entry == nullptr)) return Done(op, error);
  if (ABSL_PREDICT_FALSE(entry->retiring != nullptr)) return Done(op, -EBADF);
  entry->handle = op->handle;
  note->entry = entry;

  List<Operation>* list = &entry->queue[DirectionOf(op->opcode)];
  const bool is_wait = IsWait(op);
  if (ABSL_PREDICT_FALSE(is_wait)) list = &entry->waits;
  if (is_wait || list->empty()) {
    const int64_t result = Begin(entry, op);
    if (ABSL_PREDICT_FALSE(result > kAsked)) return Done(op, result);
    if (result == kWouldBlock) MarkDirty(entry);
  }
  list->PushBack(op);
  return Pending(op);
}

template <class Entry, class Note, int kShift>
StartResult CompletionPoller<Entry, Note, kShift>::Done(Operation* op, int64_t result) {
  op->result = result;
  op->state = Operation::State::kDone;
  return StartResult::kDone;
}

template <class Entry, class Note, int kShift>
StartResult CompletionPoller<Entry, Note, kShift>::Pending(Operation* op) {
  op->state = Operation::State::kPending;
  ++pending_;
  return StartResult::kPending;
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::Announce(Entry* entry, Operation* op) {
  entry->has_lent = true;
  NoteOf(op)->is_unfetched = true;
  NoteOf(op)->generation = entry->generation;
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::ForgetLent(Entry* entry) {
  ++entry->generation;
  entry->has_lent = false;
}

template <class Entry, class Note, int kShift>
StartResult CompletionPoller<Entry, Note, kShift>::FetchLent(Operation* op, SlabPool* pool,
                                                             Slab* slab) {
  slab->Reset();
  ABSL_HARDENING_ASSERT(op->state == Operation::State::kDone && op->opcode == OpCode::kRecvLent);
  Note* note = NoteOf(op);
  if (!std::exchange(note->is_unfetched, false)) return StartResult::kDone;  // Has its error.
  Entry* entry = EntryOf(op);
  if (entry->generation != note->generation) return Done(op, -ECANCELED);  // Retired since.
  entry->has_lent = false;
  const int64_t result = Fetch(entry, op, pool, slab);
  if (ABSL_PREDICT_FALSE(result == kWouldBlock)) {
    note = new (op->backend) Note;
    note->sequence = next_sequence_++;
    note->entry = entry;
    entry->queue[kRead].PushFront(op);  // Before those that wait behind it.
    MarkDirty(entry);
    return Pending(op);
  }
  if (!entry->queue[kRead].empty()) MarkDirty(entry);
  return Done(op, result);
}

// --- Asking ---

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::EnterKernel(Operation* op) {
  NoteOf(op)->phase = Phase::kInFlight;
  ++NoteOf(op)->entry->in_flight;
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::LeaveKernel(Operation* op) {
  NoteOf(op)->phase = Phase::kQueued;
  if (ABSL_PREDICT_TRUE(NoteOf(op)->entry != nullptr)) --NoteOf(op)->entry->in_flight;
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::AskFor(Entry* entry, ReadyQueue* done) {
  if (ABSL_PREDICT_FALSE(entry->retiring != nullptr)) return;
  if (!entry->has_lent) AskForFirst(entry, &entry->queue[kRead], done);
  AskForFirst(entry, &entry->queue[kWrite], done);
  if (ABSL_PREDICT_TRUE(entry->waits.empty())) return;
  // asyncio reports the reader of a descriptor before its writer.
  for (const OpCode opcode : {OpCode::kWaitReadable, OpCode::kWaitWritable}) {
    Operation* op = WaitToAsk(entry, opcode);
    if (op == nullptr) continue;
    const int64_t result = Ask(entry, op);
    if (result > kAsked) {
      EndWaits(op, result, done);
    } else if (result == kWouldBlock) {
      MarkDirty(entry);
    }
  }
}

// And for those behind it while each is done at once.
template <class Entry, class Note, int kShift>
inline void CompletionPoller<Entry, Note, kShift>::AskForFirst(Entry* entry, List<Operation>* queue,
                                                               ReadyQueue* done) {
  while (Operation* op = queue->front()) {
    if (NoteOf(op)->phase != Phase::kQueued) return;
    const int64_t result = Ask(entry, op);
    if (ABSL_PREDICT_TRUE(result <= kAsked)) {
      if (result == kWouldBlock) MarkDirty(entry);
      return;
    }
    op->Unlink();
    Finish(op, result, done);
    if (queue == &entry->queue[kRead] && entry->has_lent) return;
  }
}

// The first that waits for that; null if there is none, or one is asked for already.
template <class Entry, class Note, int kShift>
Operation* CompletionPoller<Entry, Note, kShift>::WaitToAsk(Entry* entry, OpCode opcode) {
  Operation* first = nullptr;
  for (Operation* op = entry->waits.front(); op != nullptr; op = entry->waits.Next(op)) {
    if (op->opcode != opcode) continue;
    const Note* note = NoteOf(op);
    if (note->phase == Phase::kInFlight && !note->wants_cancel) return nullptr;
    if (note->phase == Phase::kQueued && first == nullptr) first = op;
  }
  return first;
}

// --- Ending ---

template <class Entry, class Note, int kShift>
template <class Fn>
void CompletionPoller<Entry, Note, kShift>::ForEachPending(Entry* entry, Fn fn) {
  for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
    for (Operation* next = list->front(); next != nullptr;) {
      fn(std::exchange(next, list->Next(next)));
    }
  }
}

// Of a queue it can only be the first.
template <class Entry, class Note, int kShift>
template <class Fn>
void CompletionPoller<Entry, Note, kShift>::ForEachInFlight(Entry* entry, Fn fn) {
  for (List<Operation>& queue : entry->queue) {
    Operation* op = queue.front();
    if (op != nullptr && NoteOf(op)->phase == Phase::kInFlight) fn(op);
  }
  for (Operation* next = entry->waits.front(); next != nullptr;) {
    Operation* op = std::exchange(next, entry->waits.Next(next));
    if (NoteOf(op)->phase == Phase::kInFlight) fn(op);
  }
}

template <class Entry, class Note, int kShift>
Operation* CompletionPoller<Entry, Note, kShift>::NextToCancel(Entry* entry) {
  Operation* found = nullptr;
  ForEachInFlight(entry, [&found](Operation* op) {
    if (found == nullptr && NoteOf(op)->wants_cancel && !NoteOf(op)->has_cancel) found = op;
  });
  return found;
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::Finish(Operation* op, int64_t result,
                                                   ReadyQueue* done) {
  op->result = result;
  op->state = Operation::State::kDone;
  --pending_;
  done->PushBack(op);
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::End(Operation* op, int64_t result, ReadyQueue* done) {
  Entry* entry = EntryOf(op);
  if (ABSL_PREDICT_FALSE(entry != nullptr && entry->retiring != nullptr)) {
    op->result = result;
    NoteOf(op)->phase = Phase::kEnded;
    return FinishRetirement(entry, done);
  }
  op->Unlink();
  Finish(op, result, done);
  if (entry == nullptr) return;
  // A kernel that accepts again and again has to hear that nobody does any more; and one
  // wait may have been asked for all.
  const bool has_next =
      IsWait(op) ? !entry->waits.empty()
                 : op->opcode == OpCode::kAccept || !entry->queue[DirectionOf(op->opcode)].empty();
  if (has_next) MarkDirty(entry);
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::EndWaits(Operation* op, int64_t result,
                                                     ReadyQueue* done) {
  const OpCode opcode = op->opcode;
  Entry* entry = EntryOf(op);
  if (opcode == OpCode::kWaitWritable) done = &late_;
  End(op, result, done);
  if (entry == nullptr || entry->retiring != nullptr || result < 0) return;
  for (Operation* next = entry->waits.front(); next != nullptr;) {
    Operation* each = std::exchange(next, entry->waits.Next(next));
    if (each->opcode == opcode && NoteOf(each)->phase == Phase::kQueued) End(each, 0, done);
  }
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::Cancel(Operation* op) {
  if (op->state == Operation::State::kPending) {
    Entry* entry = op->opcode == OpCode::kRetire ? nullptr : EntryOf(op);
    if (entry == nullptr) return;  // On its way.
    if (DirectionOf(op->opcode) == kWrite) TryWrites(entry);
    if (op->state != Operation::State::kPending || NoteOf(op)->phase == Phase::kEnded) return;
    if (NoteOf(op)->phase == Phase::kQueued) return End(op, -ECANCELED, &ended_);
    NoteOf(op)->wants_cancel = true;
    return CancelInFlight(entry);
  }
  if (op->opcode != OpCode::kRecvLent || op->state != Operation::State::kDone) return;
  Note* note = NoteOf(op);
  if (!std::exchange(note->is_unfetched, false)) return;
  op->result = -ECANCELED;
  Entry* entry = EntryOf(op);
  if (entry->generation != note->generation) return;
  entry->has_lent = false;
  if (!entry->queue[kRead].empty()) MarkDirty(entry);
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::CancelAll() {
  entries_.ForEach([this](NativeHandle, Entry* entry) {
    if (entry->retiring != nullptr) return;
    TryWrites(entry);
    ForEachPending(entry, [this](Operation* op) {
      if (NoteOf(op)->phase == Phase::kQueued) return End(op, -ECANCELED, &ended_);
      NoteOf(op)->wants_cancel = true;
    });
    if (entry->in_flight > 0) CancelInFlight(entry);
  });
}

template <class Entry, class Note, int kShift>
StartResult CompletionPoller<Entry, Note, kShift>::Retire(Operation* op) {
  const bool keeps = (op->flags & kKeepOpen) != 0;
  Entry* entry = IsHandle(op->handle) ? entries_.Find(op->handle) : nullptr;
  Pending(op);
  if (entry == nullptr || entry->retiring != nullptr) {
    const bool is_new = entry == nullptr && IsHandle(op->handle);
    Finish(op, is_new ? Close(nullptr, op->handle, keeps) : -EBADF, &ended_);
    return StartResult::kPending;
  }
  TryWrites(entry);
  if (!keeps || !entry->holds_lent()) ForgetLent(entry);
  entry->retiring = op;
  if (entry->in_flight > 0) {
    ForEachInFlight(entry, [](Operation* each) { NoteOf(each)->wants_cancel = true; });
    CancelInFlight(entry);
  } else {
    FinishRetirement(entry, &ended_);
  }
  return StartResult::kPending;
}

// Ends what is not in flight, oldest first.
template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::EndAll(Entry* entry, int64_t result, ReadyQueue* done) {
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
    Finish(first, NoteOf(first)->phase == Phase::kEnded ? first->result : result, done);
  }
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::FinishRetirement(Entry* entry, ReadyQueue* done) {
  if (entry->in_flight > 0 || entry->retiring == nullptr) return;
  Operation* op = std::exchange(entry->retiring, nullptr);
  EndAll(entry, -ECANCELED, done);
  Finish(op, Close(entry, op->handle, (op->flags & kKeepOpen) != 0), done);
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::Disown(Entry* entry) {
  entry->in_flight = 0;
  EndAll(entry, -EBADF, &ended_);
  ForgetLent(entry);
  // It must not close the new file.
  Operation* retiring = std::exchange(entry->retiring, nullptr);
  if (retiring != nullptr) Finish(retiring, -EBADF, &ended_);
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::Drain() {
  CancelAll();
  ReadyQueue done;
  while (pending_ > 0 && Wait(TimePoint::InfiniteFuture(), &done).ok()) {
  }
  Collect(&done);
  done.Clear();
}

template <class Entry, class Note, int kShift>
void CompletionPoller<Entry, Note, kShift>::Drop(List<Operation>* list) {
  while (Operation* op = list->PopFront()) {
    op->result = -ECANCELED;
    op->state = Operation::State::kDone;
    --pending_;
  }
}

template <class Entry, class Note, int kShift>
CompletionPoller<Entry, Note, kShift>::~CompletionPoller() {
  entries_.ForEach([this](NativeHandle, Entry* entry) {
    for (List<Operation>* list : {&entry->queue[kRead], &entry->queue[kWrite], &entry->waits}) {
      Drop(list);
    }
  });
}

}  // namespace weft::internal

#endif  // WEFT_POLLER_COMPLETION_POLLER_H_
