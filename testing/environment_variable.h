// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_ENVIRONMENT_VARIABLE_H_
#define WEFT_TESTING_ENVIRONMENT_VARIABLE_H_

namespace weft {

// Sets a variable of this process's environment, or takes it out. Windows takes one out
// whose value is empty.
//
// Threads: while no other reads the environment.
void SetEnvironment(const char* name, const char* value);
void UnsetEnvironment(const char* name);

}  // namespace weft

#endif  // WEFT_TESTING_ENVIRONMENT_VARIABLE_H_
