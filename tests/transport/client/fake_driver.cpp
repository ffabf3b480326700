// A stand-in for the CUDA driver, as a library of its own that the client library loads in its
// place. Its devices are ranges of host memory that a test names, so that a test can look at them
// and every address outside them is refused; host memory of a copy must be pinned. Copies happen
// when their stream is synchronised and no sooner, behind what the test put into the stream before:
// who forgets to wait reads rubbish. It notes what was done in which order, and fails the call that
// it is told to. Nothing here allocates but pinned memory. Thread: any.

#include "tests/transport/client/fake_driver.hpp"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {

constexpr int k_success = 0;
constexpr int k_invalid_value = 1;
constexpr int k_not_initialised = 3;
constexpr int k_no_device = 100;
constexpr int k_invalid_device = 101;
constexpr int k_invalid_context = 201;

struct range {
  int device = 0;
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

struct work {
  void* stream = nullptr;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t to_pitch = 0;
  std::size_t from_pitch = 0;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;
};

struct copy_end {
  std::size_t x_bytes, y;
  unsigned memory;
  std::byte* host;
  std::byte* device;
  void* array;
  std::size_t pitch;
};
struct copy_2d {
  copy_end from, to;
  std::size_t width_bytes, height;
};

struct state {
  int devices = 2;
  bool initialised = false;
  std::array<range, 64> memory{};
  std::size_t memory_count = 0;
  std::array<range, 16> pinned{};
  std::array<int, 4> retained{};
  std::array<work, 256> queue{};
  std::size_t queued = 0;
  void* captured = nullptr;
  bool has_captured = false;
  char fail_in[64] = {};
  int fail_at = 0;
  int fail_with = 0;
  char log[1 << 14] = {};
  std::size_t log_length = 0;
};

state now;
std::array<int, 4> contexts{};  // the addresses of its elements are the contexts
thread_local std::array<int*, 8> stack{};
thread_local std::size_t depth = 0;
std::mutex mutex;

void note(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int length =
      std::vsnprintf(now.log + now.log_length, sizeof now.log - now.log_length, format, values);
  va_end(values);
  now.log_length += static_cast<std::size_t>(length);
  if (now.log_length + 256 > sizeof now.log) std::abort();
}

unsigned long long number(void* stream) {
  return static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(stream));
}

// Whether this call of a function is to fail, and how.
int ordered(const char* function) {
  if (std::strcmp(now.fail_in, function) != 0 || now.fail_at == 0) return k_success;
  if (--now.fail_at > 0) return k_success;
  note("%s fails\n", function);
  return now.fail_with;
}

int current_device() {
  return depth == 0 ? -1 : static_cast<int>(stack[depth - 1] - contexts.data());
}

bool is_inside(const range& r, const std::byte* begin, std::size_t bytes) {
  return r.bytes > 0 && begin >= r.begin && begin + bytes <= r.begin + r.bytes;
}

bool on_current_device(const std::byte* begin, std::size_t bytes) {
  for (std::size_t i = 0; i < now.memory_count; ++i) {
    if (now.memory[i].device == current_device() && is_inside(now.memory[i], begin, bytes))
      return true;
  }
  return false;
}

bool is_pinned(const std::byte* begin, std::size_t bytes) {
  for (const range& r : now.pinned) {
    if (is_inside(r, begin, bytes)) return true;
  }
  return false;
}

int enqueue(const work& w, bool to_device) {
  if (depth == 0) return k_invalid_context;
  const std::size_t device_pitch = to_device ? w.to_pitch : w.from_pitch;
  const std::size_t host_pitch = to_device ? w.from_pitch : w.to_pitch;
  const std::byte* device = to_device ? w.to : w.from;
  const std::byte* host = to_device ? w.from : w.to;
  for (std::size_t r = 0; r < w.rows; ++r) {
    if (!on_current_device(device + r * device_pitch, w.row_bytes)) return k_invalid_value;
    if (!is_pinned(host + r * host_pitch, w.row_bytes)) return k_invalid_value;
  }
  if (now.queued == now.queue.size()) std::abort();
  now.queue[now.queued++] = w;
  note("stream %llu: %zu x %zu bytes %s cuda:%d\n", number(w.stream), w.rows, w.row_bytes,
       to_device ? "to" : "from", current_device());
  return k_success;
}

void run(void* stream) {
  std::size_t left = 0;
  for (std::size_t i = 0; i < now.queued; ++i) {
    const work w = now.queue[i];
    if (w.stream != stream) {
      now.queue[left++] = w;
      continue;
    }
    for (std::size_t r = 0; r < w.rows; ++r) {
      std::memcpy(w.to + r * w.to_pitch, w.from + r * w.from_pitch, w.row_bytes);
    }
  }
  now.queued = left;
}

}  // namespace

// --- what a test says ---------------------------------------------------------------------------

extern "C" {

void fake_reset() {
  const std::scoped_lock lock(mutex);
  now.devices = 2;
  now.memory_count = 0;
  now.queued = 0;
  now.has_captured = false;
  now.fail_at = 0;
  now.log_length = 0;
  now.log[0] = '\0';
}
void fake_set_devices(int devices) { now.devices = devices; }
void fake_add_memory(int device, void* begin, std::size_t bytes) {
  const std::scoped_lock lock(mutex);
  if (now.memory_count == now.memory.size()) std::abort();
  now.memory[now.memory_count++] = {device, static_cast<std::byte*>(begin), bytes};
}
void fake_enqueue(void* stream, void* to, const void* from, std::size_t bytes) {
  const std::scoped_lock lock(mutex);
  now.queue[now.queued++] = {
      stream, static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes, bytes, bytes,
      1};
}
std::size_t fake_queued() { return now.queued; }
void fake_capture(void* stream, int on) {
  now.captured = stream;
  now.has_captured = on != 0;
}
void fake_fail(const char* function, int nth, int code) {
  std::snprintf(now.fail_in, sizeof now.fail_in, "%s", function);
  now.fail_at = nth;
  now.fail_with = code;
}
const char* fake_log() { return now.log; }
void fake_clear_log() {
  now.log_length = 0;
  now.log[0] = '\0';
}
std::size_t fake_pinned() {
  std::size_t count = 0;
  for (const range& r : now.pinned) count += r.bytes > 0 ? 1 : 0;
  return count;
}
int fake_retained() {
  int count = 0;
  for (const int r : now.retained) count += r;
  return count;
}
std::size_t fake_depth() { return depth; }

// --- the driver ---------------------------------------------------------------------------------

int cuInit(unsigned) {
  const std::scoped_lock lock(mutex);
  note("cuInit\n");
  if (const int code = ordered("cuInit"); code != k_success) return code;
  if (now.devices == 0) return k_no_device;
  now.initialised = true;
  return k_success;
}

int cuGetErrorName(int code, const char** name) {
  switch (code) {
    case k_invalid_value: *name = "CUDA_ERROR_INVALID_VALUE"; return k_success;
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return k_success;
    case k_not_initialised: *name = "CUDA_ERROR_NOT_INITIALIZED"; return k_success;
    case k_no_device: *name = "CUDA_ERROR_NO_DEVICE"; return k_success;
    case k_invalid_device: *name = "CUDA_ERROR_INVALID_DEVICE"; return k_success;
    case k_invalid_context: *name = "CUDA_ERROR_INVALID_CONTEXT"; return k_success;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return k_success;
    default: *name = nullptr; return k_invalid_value;
  }
}

int cuDeviceGet(int* device, int ordinal) {
  const std::scoped_lock lock(mutex);
  if (!now.initialised) return k_not_initialised;
  if (const int code = ordered("cuDeviceGet"); code != k_success) return code;
  if (ordinal < 0 || ordinal >= now.devices) return k_invalid_device;
  *device = ordinal;
  return k_success;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  const std::scoped_lock lock(mutex);
  if (const int code = ordered("cuDevicePrimaryCtxRetain"); code != k_success) return code;
  ++now.retained[static_cast<std::size_t>(device)];
  *context = &contexts[static_cast<std::size_t>(device)];
  return k_success;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  const std::scoped_lock lock(mutex);
  --now.retained[static_cast<std::size_t>(device)];
  return k_success;
}

int cuCtxPushCurrent_v2(void* context) {
  const std::scoped_lock lock(mutex);
  if (const int code = ordered("cuCtxPushCurrent"); code != k_success) return code;
  if (depth == stack.size()) std::abort();
  stack[depth++] = static_cast<int*>(context);
  return k_success;
}

int cuCtxPopCurrent_v2(void** context) {
  if (depth == 0) return k_invalid_context;
  *context = stack[--depth];
  return k_success;
}

int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const std::scoped_lock lock(mutex);
  if (const int code = ordered("cuMemHostAlloc"); code != k_success) return code;
  if (depth == 0) return k_invalid_context;
  for (range& r : now.pinned) {
    if (r.bytes > 0) continue;
    *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    std::memset(*memory, 0xa5, bytes);
    r = {0, static_cast<std::byte*>(*memory), bytes};
    note("pinned %zu bytes\n", bytes);
    return k_success;
  }
  return 2;
}

int cuMemFreeHost(void* memory) {
  const std::scoped_lock lock(mutex);
  if (depth == 0) return k_invalid_context;
  for (range& r : now.pinned) {
    if (r.bytes == 0 || r.begin != memory) continue;
    r = {};
    std::free(memory);
    return k_success;
  }
  return k_invalid_value;
}

int cuStreamIsCapturing(void* stream, int* capturing) {
  const std::scoped_lock lock(mutex);
  if (const int code = ordered("cuStreamIsCapturing"); code != k_success) return code;
  *capturing = now.has_captured && now.captured == stream ? 1 : 0;
  return depth == 0 ? k_invalid_context : k_success;
}

int cuMemcpyAsync(std::byte* to, std::byte* from, std::size_t bytes, void* stream) {
  const std::scoped_lock lock(mutex);
  if (const int code = ordered("cuMemcpyAsync"); code != k_success) return code;
  return enqueue({stream, to, from, bytes, bytes, bytes, 1}, is_pinned(from, bytes));
}

int cuMemcpy2DAsync_v2(const copy_2d* c, void* stream) {
  const std::scoped_lock lock(mutex);
  if (const int code = ordered("cuMemcpy2DAsync"); code != k_success) return code;
  const bool to_device = c->from.memory == 1 && c->to.memory == 2;
  if (!to_device && !(c->from.memory == 2 && c->to.memory == 1)) return k_invalid_value;
  return enqueue(
      {stream, to_device ? c->to.device : c->to.host, to_device ? c->from.host : c->from.device,
       c->to.pitch, c->from.pitch, c->width_bytes, c->height},
      to_device);
}

int cuStreamSynchronize(void* stream) {
  const std::scoped_lock lock(mutex);
  if (depth == 0) return k_invalid_context;
  run(stream);
  note("stream %llu: synchronised\n", number(stream));
  return ordered("cuStreamSynchronize");
}
}
