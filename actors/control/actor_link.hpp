#pragma once
// How this process's actors meet those of others: through CAF's middleman in the clear (on loopback
// alone; the settings see to that) or through its OpenSSL module. The only place that knows there
// are two. Included by control/'s sources alone. Thread: owner.

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/middleman_actor.hpp>

#include "actors/config/endpoint.hpp"
#include "schemas/base/error.hpp"

namespace moetier::actors {

// The real port. reason::address_in_use; not_enabled when the link lets in who it must not.
expected<std::uint16_t> publish(const caf::actor& whom, const config::endpoint& listen);
void unpublish(const caf::actor& whom, std::uint16_t port);
// Whom connect_atom is sent to.
caf::io::middleman_actor connector(caf::actor_system& system);

}  // namespace moetier::actors
