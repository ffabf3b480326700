#include "actors/control/actor_link.hpp"

#include <caf/io/middleman.hpp>
#include <caf/openssl/manager.hpp>
#include <caf/openssl/publish.hpp>
#include <caf/scoped_actor.hpp>

#include "transport/tls/refusal_probe.hpp"

namespace moetier::actors {
namespace {

constexpr duration_ns k_probe_limit = 2 * k_second;

}  // namespace

expected<std::uint16_t> publish(const caf::actor& whom, const config::endpoint& listen) {
  caf::actor_system& system = whom.home_system();
  const char* const host = listen.host.c_str();
  // Reuse: a restarted coordinator takes its port back while old connections linger.
  const auto port = system.has_openssl_manager()
                        ? caf::openssl::publish(whom, listen.port, host, true)
                        : system.middleman().publish(whom, listen.port, host, true);
  if (!port) return fail(reason::address_in_use, "coordinator.control_listen");
  if (system.has_openssl_manager()) {
    const auto refused = tls::probe_refusals(listen.host, *port, k_probe_limit);
    if (!refused) {
      unpublish(whom, *port);
      return tl::unexpected(refused.error());
    }
  }
  return *port;
}

void unpublish(const caf::actor& whom, std::uint16_t port) {
  caf::actor_system& system = whom.home_system();
  caf::scoped_actor self(system);
  self->request(connector(system), caf::infinite, caf::unpublish_atom::value,
                caf::actor_cast<caf::actor_addr>(whom), port)
      .receive([] {}, [](caf::error&) {});
}

caf::io::middleman_actor connector(caf::actor_system& system) {
  return system.has_openssl_manager() ? system.openssl_manager().actor_handle()
                                      : system.middleman().actor_handle();
}

}  // namespace moetier::actors
