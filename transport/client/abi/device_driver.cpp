#include "transport/client/abi/device_driver.hpp"

#include <type_traits>
#include <utility>

#include <dlfcn.h>

#include <fmt/core.h>

namespace moetier::abi {
namespace {

// The driver's binary interface, as far as it is used. Names with _v2 are what its header makes of
// the plain ones; the plain symbols are older functions of another form.
using result = int;                     // CUresult
using device_address = std::uintptr_t;  // CUdeviceptr
constexpr result k_success = 0;
constexpr unsigned k_pinned_for_all_devices = 1;  // CU_MEMHOSTALLOC_PORTABLE
constexpr unsigned k_host_memory = 1;             // CU_MEMORYTYPE_HOST
constexpr unsigned k_device_memory = 2;           // CU_MEMORYTYPE_DEVICE
constexpr int k_not_captured = 0;                 // CU_STREAM_CAPTURE_STATUS_NONE

struct copy_end {
  std::size_t x_bytes = 0;
  std::size_t y = 0;
  unsigned memory = 0;
  void* host = nullptr;
  device_address device = 0;
  void* array = nullptr;
  std::size_t pitch = 0;
};

struct copy_2d {  // CUDA_MEMCPY2D_v2
  copy_end from;
  copy_end to;
  std::size_t width_bytes = 0;
  std::size_t height = 0;
};
static_assert(sizeof(copy_end) == 56 && sizeof(copy_2d) == 128, "as the driver reads it");

}  // namespace

struct device_driver::functions {
  result (*init)(unsigned) = nullptr;
  result (*error_name)(result, const char**) = nullptr;
  result (*device_get)(int*, int) = nullptr;
  result (*primary_retain)(context*, int) = nullptr;
  result (*primary_release)(int) = nullptr;
  result (*push)(context) = nullptr;
  result (*pop)(context*) = nullptr;
  result (*host_alloc)(void**, std::size_t, unsigned) = nullptr;
  result (*host_free)(void*) = nullptr;
  result (*is_capturing)(void*, int*) = nullptr;
  result (*copy)(device_address, device_address, std::size_t, void*) = nullptr;
  result (*copy_rows)(const copy_2d*, void*) = nullptr;
  result (*synchronise)(void*) = nullptr;
};

// --- life ---------------------------------------------------------------------------------------

device_driver::device_driver(std::unique_ptr<const functions> taken) : call_(std::move(taken)) {}

device_driver::~device_driver() = default;

expected<std::unique_ptr<device_driver>> device_driver::open(const std::string& library) {
  const auto lacks = [](const std::string& what) {
    return fail(reason::not_enabled, fmt::format("device memory without {}", what));
  };
  void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return lacks(fmt::format("the CUDA driver ({})", library));
  auto taken = std::make_unique<functions>();
  const char* missing = nullptr;
  const auto take = [&](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(loaded, name));
    if (function == nullptr && missing == nullptr) missing = name;
  };
  take(taken->init, "cuInit");
  take(taken->error_name, "cuGetErrorName");
  take(taken->device_get, "cuDeviceGet");
  take(taken->primary_retain, "cuDevicePrimaryCtxRetain");
  take(taken->primary_release, "cuDevicePrimaryCtxRelease_v2");
  take(taken->push, "cuCtxPushCurrent_v2");
  take(taken->pop, "cuCtxPopCurrent_v2");
  take(taken->host_alloc, "cuMemHostAlloc");
  take(taken->host_free, "cuMemFreeHost");
  take(taken->is_capturing, "cuStreamIsCapturing");
  take(taken->copy, "cuMemcpyAsync");
  take(taken->copy_rows, "cuMemcpy2DAsync_v2");
  take(taken->synchronise, "cuStreamSynchronize");
  if (missing != nullptr) return lacks(fmt::format("{} in the CUDA driver ({})", missing, library));
  std::unique_ptr<device_driver> made(new device_driver(std::move(taken)));
  if (const result code = made->call_->init(0); code != k_success) {
    return lacks(fmt::format("a CUDA device (cuInit: {})", made->name_of(code)));
  }
  return made;
}

std::string device_driver::name_of(int code) const {
  const char* name = nullptr;
  const bool known = call_->error_name(code, &name) == k_success && name != nullptr;
  return known ? name : fmt::format("CUDA error {}", code);
}

unexpected_error device_driver::failed(int code, const std::string& doing) const {
  return fail(reason::device_lost, fmt::format("{} in {}", name_of(code), doing));
}

// --- contexts -----------------------------------------------------------------------------------

expected<device_driver::context> device_driver::retain(std::int32_t device) const {
  int handle = 0;
  if (const result code = call_->device_get(&handle, device); code != k_success) {
    return fail(reason::not_enabled, fmt::format("device memory without cuda:{} (cuDeviceGet: {})",
                                                 device, name_of(code)));
  }
  context made = nullptr;
  if (const result code = call_->primary_retain(&made, handle); code != k_success) {
    return failed(code, fmt::format("cuDevicePrimaryCtxRetain of cuda:{}", device));
  }
  return made;
}

void device_driver::release(std::int32_t device) const noexcept {
  int handle = 0;
  if (call_->device_get(&handle, device) == k_success) {
    static_cast<void>(call_->primary_release(handle));
  }
}

expected<void> device_driver::enter(context which) const {
  if (const result code = call_->push(which); code != k_success) {
    return failed(code, "cuCtxPushCurrent");
  }
  return {};
}

void device_driver::leave() const noexcept {
  context popped = nullptr;
  static_cast<void>(call_->pop(&popped));
}

// --- memory and copies --------------------------------------------------------------------------

expected<std::byte*> device_driver::allocate_pinned(std::size_t bytes) const {
  void* memory = nullptr;
  if (const result code = call_->host_alloc(&memory, bytes, k_pinned_for_all_devices);
      code != k_success) {
    return failed(code, fmt::format("cuMemHostAlloc of {} bytes", bytes));
  }
  return static_cast<std::byte*>(memory);
}

void device_driver::free_pinned(std::byte* memory) const noexcept {
  static_cast<void>(call_->host_free(memory));
}

expected<void> device_driver::check_not_captured(const char* name, void* stream) const {
  int capturing = k_not_captured;
  if (const result code = call_->is_capturing(stream, &capturing); code != k_success) {
    return failed(code, "cuStreamIsCapturing");
  }
  if (capturing == k_not_captured) return {};
  return fail(reason::sequence, name, "the stream is being captured");
}

expected<void> device_driver::to_host(const row_copy& rows, void* stream) const {
  return copy(rows, false, stream);
}

expected<void> device_driver::to_device(const row_copy& rows, void* stream) const {
  return copy(rows, true, stream);
}

expected<void> device_driver::copy(const row_copy& c, bool to_device, void* stream) const {
  const auto device = reinterpret_cast<device_address>(c.device);
  const auto host = reinterpret_cast<device_address>(c.host);
  const bool is_dense =
      c.rows == 1 || (c.host_pitch == c.row_bytes && c.device_pitch == c.row_bytes);
  result code = k_success;
  if (is_dense) {
    code = call_->copy(to_device ? device : host, to_device ? host : device, c.rows * c.row_bytes,
                       stream);
  } else {
    const copy_end on_device{.memory = k_device_memory, .device = device, .pitch = c.device_pitch};
    const copy_end on_host{.memory = k_host_memory, .host = c.host, .pitch = c.host_pitch};
    const copy_2d rows{.from = to_device ? on_host : on_device,
                       .to = to_device ? on_device : on_host,
                       .width_bytes = c.row_bytes,
                       .height = c.rows};
    code = call_->copy_rows(&rows, stream);
  }
  if (code == k_success) return {};
  return failed(
      code, fmt::format("{} of {} {} the device", is_dense ? "cuMemcpyAsync" : "cuMemcpy2DAsync",
                        c.what, to_device ? "to" : "from"));
}

expected<void> device_driver::synchronise(void* stream) const {
  if (const result code = call_->synchronise(stream); code != k_success) {
    return failed(code, "cuStreamSynchronize");
  }
  return {};
}

}  // namespace moetier::abi
