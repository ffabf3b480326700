#pragma once
// The one message type that travels between actors of different processes: a kind and raw bytes.
// The bytes of a frame are a control message's envelope (schemas/control/codec.hpp), at most 64
// KiB; the other kinds open and close a link and carry none. No other type is registered, so no
// peer can name one; there is no float and no std::byte here, because the packaged CAF spins on an
// infinite float and codes std::byte element by element. Thread: any (a value).

#include <cstdint>
#include <vector>

#include <caf/meta/type_name.hpp>
#include <caf/type_id.hpp>

namespace moetier::actors {

struct envelope {
  std::uint32_t kind = 0;
  std::vector<unsigned char> bytes;
};

inline constexpr std::uint32_t k_link_open = 1;   // worker -> coordinator: a new link begins
inline constexpr std::uint32_t k_frame = 2;       // either way
inline constexpr std::uint32_t k_link_close = 3;  // either way: this link is over

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, envelope& e) {
  return f(caf::meta::type_name("moetier.envelope"), e.kind, e.bytes);
}

}  // namespace moetier::actors

CAF_BEGIN_TYPE_ID_BLOCK(moetier, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(moetier, (moetier::actors::envelope))
CAF_END_TYPE_ID_BLOCK(moetier)
