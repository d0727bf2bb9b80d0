// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// An echo server over libuv: its streams, with one buffer for all. uv_try_write() sends what
// goes at once, as those do who want it fast; the rest is copied, and waits.

#include <uv.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "weft/bench/peers/echo.h"

namespace {

char buffer[65536];

struct Rest {
  uv_write_t request;
  char data[1];
};

void Close(uv_stream_t* stream) {
  auto* handle = reinterpret_cast<uv_handle_t*>(stream);
  if (uv_is_closing(handle)) return;
  uv_close(handle, [](uv_handle_t* closed) { delete reinterpret_cast<uv_tcp_t*>(closed); });
}

void OnRead(uv_stream_t* stream, ssize_t size, const uv_buf_t* read);

void Lend(uv_handle_t*, size_t, uv_buf_t* into) { *into = uv_buf_init(buffer, sizeof(buffer)); }

void OnRestSent(uv_write_t* request, int status) {
  uv_stream_t* stream = request->handle;
  std::free(request->data);
  if (status < 0) return Close(stream);
  uv_read_start(stream, Lend, OnRead);
}

void OnRead(uv_stream_t* stream, ssize_t size, const uv_buf_t* read) {
  if (size < 0) return Close(stream);
  if (size == 0) return;
  uv_buf_t data = uv_buf_init(read->base, static_cast<unsigned>(size));
  const int sent = uv_try_write(stream, &data, 1);
  if (sent < 0 && sent != UV_EAGAIN) return Close(stream);
  const size_t gone = sent < 0 ? 0 : static_cast<size_t>(sent);
  const size_t left = static_cast<size_t>(size) - gone;
  if (left == 0) return;
  auto* rest = static_cast<Rest*>(std::malloc(sizeof(Rest) + left));
  std::memcpy(rest->data, read->base + gone, left);
  rest->request.data = rest;
  data = uv_buf_init(rest->data, static_cast<unsigned>(left));
  uv_read_stop(stream);
  uv_write(&rest->request, stream, &data, 1, OnRestSent);
}

void OnConnection(uv_stream_t* listener, int status) {
  if (status < 0) return;
  auto* connection = new uv_tcp_t;
  uv_tcp_init(listener->loop, connection);
  auto* stream = reinterpret_cast<uv_stream_t*>(connection);
  if (uv_accept(listener, stream) < 0) return Close(stream);
  uv_tcp_nodelay(connection, 1);
  uv_read_start(stream, Lend, OnRead);
}

}  // namespace

int main() {
  const int fd = weft::bench::ListenOnLoopback();
  uv_loop_t* loop = uv_default_loop();
  uv_tcp_t listener;
  uv_tcp_init(loop, &listener);
  uv_tcp_open(&listener, fd);
  if (uv_listen(reinterpret_cast<uv_stream_t*>(&listener), 4096, OnConnection) < 0) return 1;
  weft::bench::Announce(weft::bench::PortOf(fd));
  uv_run(loop, UV_RUN_DEFAULT);
}
