#include "actors/control/actor_world.hpp"

#include <chrono>
#include <optional>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman.hpp>
#include <caf/openssl/manager.hpp>

#include "actors/control/envelope.hpp"
#include "actors/control/sealed_file.hpp"
#include "actors/process/exit_watchdog.hpp"

namespace moetier::actors {
namespace {

// A stopped peer is seen within a second: both keys, on both sides.
constexpr std::chrono::milliseconds k_io_heartbeat{200};
constexpr std::chrono::milliseconds k_io_timeout{1000};
constexpr std::size_t k_scheduler_threads = 2;
constexpr duration_ns k_shutdown_limit = 3 * k_second;

// What CAF's OpenSSL module reads anew for each connection: the very bytes that were checked, so
// that a file which changes or goes away later cannot end the process inside CAF.
struct link_identity {
  sealed_file certificate;
  sealed_file key;
  sealed_file authority;
};

expected<link_identity> seal(const tls::pem_texts& texts) {
  auto certificate = sealed_file::make(texts.certificate);
  auto key = sealed_file::make(texts.key);
  auto authority = sealed_file::make(texts.authority);
  for (const auto* made : {&certificate, &key, &authority}) {
    if (!*made) return tl::unexpected(made->error());
  }
  return link_identity{std::move(*certificate), std::move(*key), std::move(*authority)};
}

struct configuration final : caf::actor_system_config {
  explicit configuration(const std::optional<link_identity>& own) {
    load<caf::io::middleman>();
    if (own) {
      load<caf::openssl::manager>();
      openssl_certificate = own->certificate.name();
      openssl_key = own->key.name();
      openssl_cafile = own->authority.name();
    }
    add_message_types<caf::id_block::moetier>();
    // Sharing wakes in 17 us where stealing takes 60, and sleeps when there is nothing to do.
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", k_scheduler_threads);
    set("middleman.heartbeat-interval", caf::timespan(k_io_heartbeat));
    set("middleman.connection-timeout", caf::timespan(k_io_timeout));
  }
};

std::uint64_t fnv1a(const std::string& text) noexcept {
  std::uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

}  // namespace

struct actor_world::state {
  explicit state(std::optional<link_identity> i) : own(std::move(i)) {}

  std::optional<link_identity> own;
  configuration config{own};
  caf::actor_system system{config};
};

expected<std::unique_ptr<actor_world>> actor_world::make(const tls::credential_ptr& own,
                                                         event_log& log) {
  std::optional<link_identity> identity;
  if (own != nullptr) {
    auto sealed = seal(own->texts());
    if (!sealed) return tl::unexpected(sealed.error());
    identity = std::move(*sealed);
  }
  return std::unique_ptr<actor_world>(
      new actor_world(log, std::make_unique<state>(std::move(identity))));
}

actor_world::actor_world(event_log& log, std::unique_ptr<state> made)
    : log_(log), state_(std::move(made)) {}

actor_world::~actor_world() {
  const exit_watchdog watchdog(log_, "actor_system", k_shutdown_limit, exit_code_);
  state_.reset();
}

caf::actor_system& actor_world::system() noexcept { return state_->system; }

std::uint64_t actor_world::node() const noexcept { return fnv1a(to_string(state_->system.node())); }

}  // namespace moetier::actors
