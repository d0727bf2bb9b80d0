// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_INTRUSIVE_LIST_H_
#define WEFT_CORE_INTRUSIVE_LIST_H_

#include <cstddef>

#include "absl/base/macros.h"
#include "absl/base/optimization.h"

namespace weft {

// ListNode
//
// The links of something that can be in a `List`: a base class of what is
// listed, so that listing allocates nothing. It is in one list at a time and
// leaves it when destroyed.
class ListNode {
 public:
  ListNode() = default;
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;
  ~ListNode() { Unlink(); }

  bool is_linked() const { return next_ != nullptr; }

  // Takes the node out of whatever list it is in; does nothing if it is in
  // none. Needs no reference to the list.
  void Unlink() {
    if (next_ == nullptr) return;
    next_->prev_ = prev_;
    prev_->next_ = next_;
    next_ = nullptr;
  }

  // Puts `other`, which is in no list, where this node is, and takes this one out.
  // REQUIRES: is_linked().
  void ReplaceBy(ListNode* other) {
    ABSL_ASSERT(is_linked() && !other->is_linked());
    other->next_ = next_;
    other->prev_ = prev_;
    next_->prev_ = other;
    prev_->next_ = other;
    next_ = nullptr;
  }

 private:
  template <class T>
  friend class List;
  friend class Inbox;

  ListNode* next_ = nullptr;
  ListNode* prev_;  // Meaningless while `next_` is null.
};

// List
//
// A doubly linked list of objects that somebody else owns. Every operation but
// `Clear()` and `CountSlowly()` is O(1). An element that is destroyed while it
// is listed leaves the list.
//
// The stores are in an order that keeps compilers from making one vector store of two:
// putting the vector together costs more than it saves.
//
// Threads: none of its own; belongs to whoever owns the elements.
template <class T>
class List {
 public:
  List() { Reset(); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    if (is_made()) Clear();
    head_.next_ = nullptr;
  }

  // A list that is hardly ever used: nothing but Make(), is_made() and destruction
  // is allowed until Make() was called, which may be done again.
  struct Unmade {};
  explicit List(Unmade) {}
  void Make() {
    if (!is_made()) Reset();
  }
  bool is_made() const { return head_.is_linked(); }

  bool empty() const { return head_.next_ == &head_; }
  // REQUIRES: not empty.
  bool has_one() const { return head_.next_ == head_.prev_; }
  T* front() { return empty() ? nullptr : static_cast<T*>(head_.next_); }
  const T* front() const { return empty() ? nullptr : static_cast<const T*>(head_.next_); }
  T* back() { return empty() ? nullptr : static_cast<T*>(head_.prev_); }

  // The element behind `node`, or null at the end.
  T* Next(T* node) {
    ListNode* next = Links(node)->next_;
    return next == &head_ ? nullptr : static_cast<T*>(next);
  }

  // REQUIRES: `node` is in no list.
  void PushBack(T* node) { InsertBefore(&head_, node); }
  void PushFront(T* node) { InsertBefore(head_.next_, node); }

  // Takes the first element out; null if there is none.
  T* PopFront() {
    ListNode* node = head_.next_;
    if (ABSL_PREDICT_FALSE(node == &head_)) return nullptr;
    head_.next_ = node->next_;
    node->next_->prev_ = &head_;
    node->next_ = nullptr;
    return static_cast<T*>(node);
  }

  // Takes the only element out. REQUIRES: has_one(), not empty.
  T* PopOnly() {
    ListNode* const node = head_.next_;
    head_.next_ = &head_;
    node->next_ = nullptr;
    head_.prev_ = &head_;
    return static_cast<T*>(node);
  }

  // Moves all of `other` behind the elements of this list, in order.
  void Splice(List* other) {
    if (other->empty()) return;
    ListNode* const first = other->head_.next_;
    ListNode* const last = other->head_.prev_;
    first->prev_ = head_.prev_;
    head_.prev_->next_ = first;
    other->head_.next_ = &other->head_;
    last->next_ = &head_;
    other->head_.prev_ = &other->head_;
    head_.prev_ = last;
  }

  // Takes every element out. O(n).
  void Clear() {
    while (PopFront() != nullptr) {
    }
  }

  // O(n): for tests and diagnostics.
  size_t CountSlowly() const {
    size_t count = 0;
    for (const ListNode* node = head_.next_; node != &head_; node = node->next_) ++count;
    return count;
  }

 private:
  static ListNode* Links(T* node) { return node; }

  void Reset() { head_.next_ = head_.prev_ = &head_; }

  void InsertBefore(ListNode* place, ListNode* node) {
    ABSL_ASSERT(!node->is_linked());
    ListNode* const last = place->prev_;
    node->prev_ = last;
    last->next_ = node;
    node->next_ = place;
    place->prev_ = node;
  }

  ListNode head_;  // A sentinel: linked to itself while the list is empty.
};

}  // namespace weft

#endif  // WEFT_CORE_INTRUSIVE_LIST_H_
