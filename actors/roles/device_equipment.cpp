#include "actors/roles/device_equipment.hpp"

#include <algorithm>
#include <utility>

#include "kernels/self_test.hpp"
#include "workers/device/staged_pages.hpp"

namespace moetier::roles {
namespace {

expected<void> test(workers::device_backend& backend, const activation_constants& constants) {
  std::unique_ptr<std::byte, void (*)(std::byte*)> placed(nullptr, nullptr);
  return kernels::self_test(backend, constants,
                            [&](std::span<const std::byte> page) -> expected<const std::byte*> {
                              auto bytes = backend.place_page(page);
                              if (!bytes) return tl::unexpected(bytes.error());
                              placed = std::move(*bytes);
                              return placed.get();
                            });
}

}  // namespace

expected<device_equipment> make_on_device(workers::worker_device& device, std::string_view identity,
                                          const kernels::expert_shape& shape,
                                          const model_description& model, const device_wish& wish) {
  auto made = device.make_layer(identity, shape);
  if (!made) return tl::unexpected(made.error());
  const auto store = workers::expert_store::bill(wish.store, model, made->layer->page_bytes());
  if (!store) return tl::unexpected(store.error());
  workers::device_bill bill = workers::device_backend::bill(*made->layer, wish.capacity);
  bill.pages = store->pages;
  const std::size_t free = device.free_bytes();
  const std::size_t available =
      wish.memory_max_bytes == 0 ? free : std::min(wish.memory_max_bytes, free);
  if (auto fits = workers::check_bill(bill, available); !fits) return tl::unexpected(fits.error());
  auto queue = device.make_queue();
  if (!queue) return tl::unexpected(queue.error());
  auto backend = workers::device_backend::create(std::move(made->layer), made->operands,
                                                 wish.capacity, std::move(*queue));
  if (!backend) return tl::unexpected(backend.error());
  if (auto passed = test(**backend, model.activation.constants); !passed)
    return tl::unexpected(passed.error());
  return device_equipment{.backend = std::move(*backend),
                          .pages = std::make_unique<workers::staged_pages_maker>(
                              [&device] { return device.make_queue(); }),
                          .pages_max_bytes = available - bill.workspace - bill.calls,
                          .bill = bill};
}

}  // namespace moetier::roles
