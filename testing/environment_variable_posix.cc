// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>

#include "weft/testing/environment_variable.h"

namespace weft {

void SetEnvironment(const char* name, const char* value) { ::setenv(name, value, /*overwrite=*/1); }

void UnsetEnvironment(const char* name) { ::unsetenv(name); }

}  // namespace weft
