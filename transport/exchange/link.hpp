#pragma once
// The narrow waist between the protocol and a carrier. A Link moves frames (header, payload)
// between one half and its peers and knows nothing of exchanges; a FrameSink is the half behind it,
// which knows the protocol and no library. So every carrier runs the same protocol code. Frames may
// be lost, doubled, late or damaged; the sink judges each header before any payload byte lands.
// Thread: the half's owner; wake(): any.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"
#include "transport/communication.hpp"
#include "transport/exchange/bank_memory.hpp"

namespace moetier::transport {

using link_peer = std::uint32_t;   // a connected peer, never reused within a link; 0 is none
using link_place = std::uint64_t;  // names an exchange to the sink that gave it; opaque to the link

// Where the payload of an admitted frame goes.
struct landing {
  bool admitted = false;
  link_place place = 0;
  std::span<std::byte> region;                           // as long as the payload
  const std::shared_ptr<bank_memory>* memory = nullptr;  // owns `region`
};

class FrameSink {
 public:
  // A frame is here, its payload may still be on its way. If admitted, the link stores the payload
  // into the region (also an empty one) and then says landed(). Else the frame is forgotten.
  virtual landing admit(std::span<const std::byte> head, std::size_t payload_bytes) = 0;
  virtual void landed(link_place place, bool complete) = 0;
  // The bank's out region is no longer read, since `at` (0: since now).
  virtual void sent(link_place place, time_ns at) = 0;
  virtual void lost(link_peer peer) = 0;
  virtual void gone(link_peer peer) = 0;  // lost for good: its process has ended
  virtual void left(link_peer peer) = 0;  // it was taken down in good order
  virtual bool has_work() const = 0;      // poll() would report something

 protected:
  ~FrameSink() = default;
};

enum class link_send : std::uint8_t {
  done,     // the out region may be written again
  pending,  // sent() will be called
  failed    // the peer is lost
};

class Link {
 public:
  virtual ~Link() = default;
  virtual const member_address& address() const noexcept = 0;

  // What it keeps for itself of a pair's memory (bank_layout::carrier_bytes).
  virtual std::size_t carrier_bytes() const noexcept { return 0; }
  virtual expected<link_peer> connect(const member_address& address,
                                      std::shared_ptr<bank_memory> memory) = 0;
  // Never blocks. No call for this peer follows; memory that a request may still touch stays.
  virtual void disconnect(link_peer peer) = 0;

  // Sends a header of the pair's memory and the first `payload_bytes` of the bank's out region,
  // which a header that is no bank's has none of. One send of a header at a time.
  virtual link_send send(link_peer peer, std::uint32_t head, std::size_t payload_bytes,
                         link_place place) = 0;
  // Moves what can be moved, calling `sink`.
  virtual void progress(FrameSink& sink) = 0;
  // Until the sink has work, wake() was called, or the time is over. Spins until `spin` after the
  // last useful progress, then sleeps.
  virtual void wait(FrameSink& sink, std::chrono::nanoseconds spin,
                    std::chrono::nanoseconds limit) = 0;
  virtual void wake() noexcept = 0;
  virtual std::uint64_t frames_dropped() const noexcept = 0;  // before any sink saw them
  // Requests of disconnected peers that the library has not ended.
  virtual std::uint64_t requests_left() const noexcept = 0;
};

}  // namespace moetier::transport
