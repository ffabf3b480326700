#pragma once
// CUDA's error numbers by what they mean for a worker. Pure, by number, so that it is tested
// without CUDA; who includes CUDA checks that the numbers are its own. Thread: any (pure
// functions).

#include <cstdint>

namespace moetier::workers {

enum class device_error : std::uint8_t {
  none = 0,
  absent = 1,         // no device, no driver, or one that does not fit
  out_of_memory = 2,  // nothing was allocated; everything else goes on
  refused = 3,        // arguments that this device does not take: our bug; the context lives
  context_dead = 4,   // every later call fails: only a new process can use the device
};

// Numbers that are not listed here are taken for a dead context: nothing is retried in place.
constexpr device_error device_error_of(int code) noexcept {
  switch (code) {
    case 0: return device_error::none;
    case 2: return device_error::out_of_memory;
    case 1:    // invalid value
    case 9:    // invalid configuration
    case 98:   // invalid device function
    case 209:  // no kernel image for the device
    case 701:  // launch out of resources
    case 720:  // cooperative launch too large
    case 900:  // stream capture: unsupported, invalidated, merge, unmatched, unjoined, isolation,
    case 901:  // implicit, a captured event, the wrong thread
    case 902:
    case 903:
    case 904:
    case 905:
    case 906:
    case 907:
    case 908: return device_error::refused;
    case 3:    // initialisation failed
    case 35:   // the driver is older than the runtime
    case 46:   // all devices are busy or prohibited
    case 100:  // no device
    case 101:  // no such device
    case 802:  // the system is not ready
    case 803:  // driver and libraries do not fit
      return device_error::absent;
    default: return device_error::context_dead;
  }
}

}  // namespace moetier::workers
