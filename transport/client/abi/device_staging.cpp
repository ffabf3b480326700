#include "transport/client/abi/device_staging.hpp"

#include <algorithm>
#include <array>

#include "schemas/base/assert.hpp"

namespace moetier::abi {
namespace {

constexpr std::size_t k_alignment_bytes = 256;  // no two parts share a line or a device's sector

struct staged {
  const char* name;
  const tensor_view& host;
  const tensor_view& device;
};

row_copy copy_of(const staged& s) {
  return {.what = s.name,
          .host = s.host.data,
          .host_pitch = s.host.pitch,
          .device = s.device.data,
          .device_pitch = s.device.pitch,
          .row_bytes = s.device.row_bytes(),
          .rows = s.device.rows};
}

bool holds_rows(const tensor_view& view) { return view.given() && view.rows > 0; }

}  // namespace

// --- life ---------------------------------------------------------------------------------------

device_staging::device_staging(std::string library, const tensor_sizes& sizes)
    : library_(std::move(library)) {
  const std::size_t tokens = sizes.tokens_max;
  std::size_t bytes[parts] = {};
  bytes[rows] = tokens * sizes.hidden_size * sizeof(float);
  bytes[router_rows] = tokens * sizes.columns * sizeof(float);
  bytes[ids] = tokens * sizes.top_k * sizeof(std::int64_t);
  bytes[weights] = tokens * sizes.top_k * sizeof(float);
  bytes[token_ids] = bytes[adapter_ids] = tokens * sizeof(std::int64_t);
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t end = offsets_[i] + bytes[i];
    offsets_[i + 1] = (end + k_alignment_bytes - 1) / k_alignment_bytes * k_alignment_bytes;
  }
}

device_staging::~device_staging() {
  if (driver_ == nullptr) return;
  if (memory_ != nullptr) {
    const device_scope scope(*driver_, contexts_.front().second);
    if (scope.entered()) driver_->free_pinned(memory_);
  }
  for (const auto& [device, context] : contexts_) driver_->release(device);
}

expected<device_driver::context> device_staging::ready(std::int32_t device) {
  if (driver_ == nullptr) {
    auto opened = device_driver::open(library_);
    if (!opened) return unexpected_error(opened.error());
    driver_ = std::move(*opened);
  }
  auto known = std::find_if(contexts_.begin(), contexts_.end(),
                            [&](const auto& c) { return c.first == device; });
  if (known == contexts_.end()) {
    contexts_.reserve(contexts_.size() + 1);  // what is retained must be noted
    const auto context = driver_->retain(device);
    if (!context) return context;
    known = contexts_.emplace(contexts_.end(), device, *context);
  }
  if (memory_ == nullptr) {
    const device_scope scope(*driver_, known->second);
    if (!scope.entered()) return unexpected_error(scope.entered().error());
    const auto made = driver_->allocate_pinned(offsets_[parts]);
    if (!made) return unexpected_error(made.error());
    memory_ = *made;
  }
  return known->second;
}

tensor_view device_staging::at(part where, const tensor_view& view) const {
  if (!view.given()) return view;
  tensor_view host = view;
  host.device = k_on_host;
  host.pitch = view.row_bytes();
  host.data = memory_ + offsets_[where];
  MOETIER_ASSERT(host.end() <= memory_ + offsets_[where + 1]);
  return host;
}

// --- copies -------------------------------------------------------------------------------------

// A copy that failed may stand behind others that have not: they must not write into the places of
// a later call.
expected<void> device_staging::wait_after(expected<void> copied, void* stream) const {
  auto waited = driver_->synchronise(stream);
  return copied ? waited : copied;
}

expected<void> device_staging::fetch(call_views& views, void* stream) {
  const auto context = ready(views.place.device);
  if (!context) return unexpected_error(context.error());
  const device_scope scope(*driver_, *context);
  if (!scope.entered()) return scope.entered();
  if (auto ok = driver_->check_not_captured("submit", stream); !ok) return ok;
  const call_views host{.hidden = at(rows, views.hidden),
                        .logits = at(router_rows, views.logits),
                        .ids = at(ids, views.ids),
                        .weights = at(weights, views.weights),
                        .token_ids = at(token_ids, views.token_ids),
                        .adapter_ids = at(adapter_ids, views.adapter_ids),
                        .place = {views.place.name, k_on_host}};
  expected<void> copied;
  for (const staged& s :
       {staged{"hidden", host.hidden, views.hidden}, staged{"logits", host.logits, views.logits},
        staged{"ids", host.ids, views.ids}, staged{"weights", host.weights, views.weights},
        staged{"token_ids", host.token_ids, views.token_ids},
        staged{"adapter_ids", host.adapter_ids, views.adapter_ids}}) {
    if (copied && holds_rows(s.device)) copied = driver_->to_host(copy_of(s), stream);
  }
  if (auto ok = wait_after(std::move(copied), stream); !ok) return ok;
  views = host;
  return {};
}

expected<result_views> device_staging::places_for(const result_views& views, void* stream) {
  const auto context = ready(views.place.device);
  if (!context) return unexpected_error(context.error());
  const device_scope scope(*driver_, *context);
  if (!scope.entered()) return unexpected_error(scope.entered().error());
  if (auto ok = driver_->check_not_captured("collect", stream); !ok) {
    return unexpected_error(ok.error());
  }
  return result_views{.output = at(rows, views.output),
                      .ids = at(ids, views.ids),
                      .weights = at(weights, views.weights),
                      .bad_rows = at(token_ids, views.bad_rows),
                      .place = {views.place.name, k_on_host}};
}

expected<void> device_staging::store(const result_views& places, const result_views& views,
                                     void* stream) {
  const auto context = ready(views.place.device);
  if (!context) return unexpected_error(context.error());
  const device_scope scope(*driver_, *context);
  if (!scope.entered()) return scope.entered();
  expected<void> copied;
  for (const staged& s :
       {staged{"output", places.output, views.output}, staged{"ids", places.ids, views.ids},
        staged{"weights", places.weights, views.weights},
        staged{"bad_rows", places.bad_rows, views.bad_rows}}) {
    if (copied && holds_rows(s.device)) copied = driver_->to_device(copy_of(s), stream);
  }
  return wait_after(std::move(copied), stream);
}

}  // namespace moetier::abi
