// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_STREAM_H_
#define WEFT_NET_STREAM_H_

// Streams as asyncio has them, whole: StreamReader and StreamWriter
// (connection.h), OpenConnection() (connect.h), StartServer() (server.h).

#include "weft/net/connect.h"
#include "weft/net/connection.h"
#include "weft/net/server.h"

#endif  // WEFT_NET_STREAM_H_
