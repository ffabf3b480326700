// What UCX 1.13 itself leaks: about 100 bytes (a table of attached segments) for an endpoint that
// is closed by force. Linked into every test that opens the carrier, so that the leak check of a
// sanitized build goes on judging our own memory.

extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libuct.so\nleak:libucp.so\nleak:libucs.so\n";
}
