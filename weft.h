// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_WEFT_H_
#define WEFT_WEFT_H_

#endif  // WEFT_WEFT_H_
