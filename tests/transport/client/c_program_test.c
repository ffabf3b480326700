/* A C program on libmoetier: loading it is inert, and a coordinator that is not there is a typed error. */
#include <stdio.h>
#include <string.h>

#include "transport/client/abi/moetier.h"

_Static_assert(sizeof(moetier_status_word) == 64, "status words are 64 bytes");

static int failed(const char *what) {
  fprintf(stderr, "failed: %s\n", what);
  return 1;
}

/* Threads of this process; -1 if it cannot be told. */
static int threads(void) {
  char line[128];
  int count = -1;
  FILE *file = fopen("/proc/self/status", "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "Threads: %d", &count) == 1) break;
  }
  fclose(file);
  return count;
}

/* The runtime of a sanitizer may have a thread of its own. */
#ifndef MOETIER_SANITIZED
#define MOETIER_SANITIZED 0
#endif
static int sanitized(void) { return MOETIER_SANITIZED; }

int main(void) {
  moetier_service *service = NULL;
  moetier_service_options options;
  const moetier_error *error;
  if (threads() > 1 && !sanitized()) return failed("the library started a thread when it was loaded");
  if (moetier_abi_version() != MOETIER_VERSION) return failed("version");
  if (moetier_last_error() != NULL) return failed("an error before the first failure");

  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.version = MOETIER_VERSION;
  options.address = "127.0.0.1:1";
  options.connect_timeout_ns = 100000000;
  if (moetier_service_open(&options, &service) != MOETIER_UNAVAILABLE) return failed("status");
  if (service != NULL) return failed("a handle without a service");
  error = moetier_last_error();
  if (error == NULL || strcmp(error->reason, "coordinator_unreached") != 0) return failed("reason");
  if (error->retryable != 1) return failed("retryable");
  return 0;
}
