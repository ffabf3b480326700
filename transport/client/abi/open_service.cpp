#include <memory>
#include <utility>

#include "transport/client/abi/handles.hpp"
#include "transport/client/abi/versioned_struct.hpp"

namespace moetier::abi {

expected<void> open_service(const moetier_service_options* options, moetier_service** out,
                            service_world world) {
  if (out == nullptr) return fail(reason::invalid_argument, "service", "null", "a pointer");
  *out = nullptr;
  const auto wish = read_struct("service options", options);
  if (!wish) return unexpected_error(wish.error());
  auto made = service::open(*wish, std::move(world));
  if (!made) return unexpected_error(made.error());
  *out = std::make_unique<moetier_service>(moetier_service{std::move(*made)}).release();
  return {};
}

}  // namespace moetier::abi
