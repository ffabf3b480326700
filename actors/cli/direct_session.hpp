#pragma once
// A direct session of the command line: link, carrier and source half, opened, attached and closed
// together. Used by `forward --via direct` and `bench tier`. Thread: owner.

#include <memory>
#include <string>

#include "actors/config/settings.hpp"
#include "kernels/backend.hpp"
#include "schemas/base/error.hpp"
#include "transport/client/link/router_cache.hpp"
#include "transport/client/link/tier_link.hpp"
#include "transport/client/source/source_session.hpp"
#include "transport/communication.hpp"

namespace moetier::cli {

struct direct_wish {
  std::string address;
  std::uint32_t tokens_max = 1;
  std::uint32_t micro_batches = 1;
  kernels::return_mode mode = kernels::return_mode::partial;
  bool gate_on_tier = false;
  bool shared_experts = false;
  std::optional<deadline_class> urgency{};
  std::string tenant = "default";
  duration_ns limit = 10 * k_second;
};

class direct_session final {
 public:
  static expected<std::unique_ptr<direct_session>> open(const direct_wish& wish,
                                                        const config::settings& settings);
  ~direct_session();  // closes the session at the coordinator
  direct_session(const direct_session&) = delete;
  direct_session& operator=(const direct_session&) = delete;

  client::source_session& source() noexcept { return *source_; }
  client::tier_link& link() noexcept { return *link_; }

 private:
  direct_session() = default;

  std::unique_ptr<client::tier_link> link_;
  std::unique_ptr<client::router_cache> routers_;
  std::unique_ptr<transport::Communication> carrier_;
  std::unique_ptr<client::source_session> source_;
  session_id session_;
};

}  // namespace moetier::cli
