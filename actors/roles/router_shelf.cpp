#include "actors/roles/router_shelf.hpp"

#include <utility>

namespace moetier::roles {

expected<client::layer_router_ptr> router_shelf::get(std::size_t moe_index) {
  const model_description& model = files_.model();
  if (!model.router_reads_hidden) {
    return fail(reason::not_enabled,
                "gate tier (this model's router reads another vector than its experts)");
  }
  const std::lock_guard lock(mutex_);
  client::layer_router_ptr& held = held_[moe_index];
  if (held == nullptr) {
    auto read = files_.read_router(model.moe_layers[moe_index]);
    if (!read) return tl::unexpected(read.error());
    auto router = std::make_shared<client::layer_router>();
    router->type = read->element;
    router->columns = model.columns();
    router->width = model.router_width;
    router->matrix = std::move(read->bytes);
    router->bias = std::move(read->bias);
    held = std::move(router);
  }
  return held;
}

}  // namespace moetier::roles
