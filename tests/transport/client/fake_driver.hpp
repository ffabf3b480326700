#pragma once
// What a test says to the stand-in for the CUDA driver (fake_driver.cpp), which it links and the
// client library loads. Devices are ranges of host memory. Thread: any.

#include <cstddef>
#include <cstdint>

extern "C" {

void fake_reset();  // two devices without memory, nothing queued, noted or to fail
void fake_set_devices(int devices);
void fake_add_memory(int device, void* begin, std::size_t bytes);
// Work of the test's own in a stream, done when it is synchronised.
void fake_enqueue(void* stream, void* to, const void* from, std::size_t bytes);
std::size_t fake_queued();
void fake_capture(void* stream, int on);
// The nth call of a function from now on answers `code`.
void fake_fail(const char* function, int nth, int code);
const char* fake_log();
void fake_clear_log();
std::size_t fake_pinned();  // pieces of pinned memory that are not freed
int fake_retained();        // contexts that are not given back
std::size_t fake_depth();   // of this thread's stack of contexts
}
