#pragma once
// The few functions of the CUDA driver that tensors in device memory need, taken by name from the
// driver's own library when the first such tensor comes: nothing of CUDA is linked or included
// here, and a program without device tensors never loads it. Owned by a session's staging. All its
// work runs on streams of a device's primary context, which is the one that the CUDA runtime and
// the frameworks over it use. It never resets or configures a device.
// Thread: owner.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "schemas/base/error.hpp"

namespace moetier::abi {

inline constexpr const char* k_driver_library = "libcuda.so.1";

// Rows between a device and pinned host memory; `pitch` bytes from one to the next.
struct row_copy {
  const char* what = "";  // the tensor, for the sentence about a failure
  std::byte* host = nullptr;
  std::size_t host_pitch = 0;
  std::byte* device = nullptr;
  std::size_t device_pitch = 0;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;
};

class device_driver final {
 public:
  using context = void*;

  // reason::not_enabled says what lacks: the library, one of its functions, or all devices.
  static expected<std::unique_ptr<device_driver>> open(const std::string& library);
  device_driver(const device_driver&) = delete;
  ~device_driver();  // the library stays loaded: others in the process use it

  // The primary context of a device, to be given back. reason::not_enabled: no such device.
  expected<context> retain(std::int32_t device) const;
  void release(std::int32_t device) const noexcept;

  // Makes a context this thread's, until leave(). What follows needs one.
  expected<void> enter(context which) const;
  void leave() const noexcept;

  // Host memory that every device may copy to and from.
  expected<std::byte*> allocate_pinned(std::size_t bytes) const;
  void free_pinned(std::byte* memory) const noexcept;

  // reason::sequence if the stream is being captured into a graph, which a host's wait would break.
  expected<void> check_not_captured(const char* call, void* stream) const;
  // Enqueue; the bytes have moved when the stream was synchronised.
  expected<void> to_host(const row_copy& rows, void* stream) const;
  expected<void> to_device(const row_copy& rows, void* stream) const;
  expected<void> synchronise(void* stream) const;

 private:
  struct functions;
  explicit device_driver(std::unique_ptr<const functions> taken);
  expected<void> copy(const row_copy& rows, bool to_device, void* stream) const;
  unexpected_error failed(int code, const std::string& doing) const;
  std::string name_of(int code) const;

  std::unique_ptr<const functions> call_;
};

// Makes a context this thread's for a scope, if entered() says so.
class device_scope final {
 public:
  device_scope(const device_driver& driver, device_driver::context which)
      : driver_(driver), entered_(driver.enter(which)) {}
  device_scope(const device_scope&) = delete;
  ~device_scope() {
    if (entered_) driver_.leave();
  }
  const expected<void>& entered() const noexcept { return entered_; }

 private:
  const device_driver& driver_;
  const expected<void> entered_;
};

}  // namespace moetier::abi
