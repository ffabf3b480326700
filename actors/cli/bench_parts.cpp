#include "actors/cli/bench_parts.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <tuple>

#include "actors/cli/random_expert.hpp"
#include "actors/cli/ucx_echo.hpp"
#include "actors/config/device_name.hpp"
#include "kernels/backend.hpp"
#include "kernels/candidates/backend_candidate.hpp"
#include "kernels/candidates/make_backend.hpp"
#include "workers/device/device_backend.hpp"
#include "workers/device/worker_device.hpp"

namespace moetier::cli {
namespace {

constexpr std::uint32_t k_experts_max = 64;  // pages made for the compute figure

// A backend and its pages, wherever they lie.
struct bench_backend {
  std::unique_ptr<workers::worker_device> device;
  std::shared_ptr<transport::RowMemoryWatch> row_memory;  // as a worker's rows lie, or null
  std::vector<aligned_bytes> on_host;
  std::vector<workers::device_bytes> on_device;
  std::unique_ptr<kernels::Backend> backend;  // goes before the pages
  std::vector<const std::byte*> pages;
};

// Rows that a device reaches while this lives. Requires: the memory lives longer.
class watched_rows final {
 public:
  watched_rows(transport::RowMemoryWatch* watch, std::span<std::byte> block)
      : watch_(watch), block_(block) {
    if (watch_ != nullptr) watch_->made(block_);
  }
  ~watched_rows() {
    if (watch_ != nullptr) watch_->going(block_);
  }
  watched_rows(const watched_rows&) = delete;
  watched_rows& operator=(const watched_rows&) = delete;

 private:
  transport::RowMemoryWatch* watch_;
  std::span<std::byte> block_;
};

expected<void> make_device_backend(bench_backend& b, const std::string& identity,
                                   const kernels::expert_shape& shape,
                                   const workers::device_capacity& capacity,
                                   const workers::device_options& options,
                                   const kernels::expert_tensors& tensors) {
  auto device = workers::open_device(options);
  if (!device) return tl::unexpected(device.error());
  b.device = std::move(*device);
  b.row_memory = b.device->row_memory();
  auto layer = b.device->make_layer(identity, shape);
  if (!layer) return tl::unexpected(layer.error());
  auto queue = b.device->make_queue();
  if (!queue) return tl::unexpected(queue.error());
  auto backend = workers::device_backend::create(std::move(layer->layer), layer->operands, capacity,
                                                 std::move(*queue));
  if (!backend) return tl::unexpected(backend.error());
  aligned_bytes page((*backend)->page_bytes());
  (*backend)->pack_page(tensors, page.span());
  for (std::uint32_t e = 0; e < capacity.slots_max; ++e) {
    auto placed = (*backend)->place_page(page.span());
    if (!placed) return tl::unexpected(placed.error());
    b.pages.push_back(placed->get());
    b.on_device.push_back(std::move(*placed));
  }
  b.backend = std::move(*backend);
  return {};
}

expected<void> make_host_backend(bench_backend& b, const std::string& identity,
                                 const kernels::expert_shape& shape, unsigned threads,
                                 std::uint32_t experts, const kernels::expert_tensors& tensors) {
  auto backend =
      kernels::make_backend(identity, shape, {.threads = threads}, kernels::detect_cpu_features());
  if (!backend) return tl::unexpected(backend.error());
  b.backend = std::move(*backend);
  b.on_host.reserve(experts);
  for (std::uint32_t e = 0; e < experts; ++e) {
    b.on_host.emplace_back(b.backend->page_bytes());
    b.backend->pack_page(tensors, b.on_host.back().span());
    b.pages.push_back(b.on_host.back().data());
  }
  return {};
}

}  // namespace

expected<std::vector<std::uint64_t>> compute_times(const model_description& model,
                                                   const std::string& identity,
                                                   const config::settings& settings,
                                                   const bench_shape& shape) {
  weight_format format = model.format;
  const auto* const candidate = kernels::candidate_of(identity, format.quant);
  if (candidate == nullptr)
    return fail(reason::backend_unresolved, identity + " is not known here");
  const auto device = config::parse_device(settings.worker.device);
  const bool on_device = candidate->device == resolution::device_kind::cuda;
  if (on_device && !(device && device->cuda)) return std::vector<std::uint64_t>{};
  const kernels::expert_shape expert{.hidden_size = model.hidden_size,
                                     .intermediate_size = model.intermediate_size,
                                     .format = format,
                                     .activation = model.activation.kind,
                                     .bias = model.expert_bias};
  const auto tensors = make_random_expert(expert, 1);
  if (!tensors) return tl::unexpected(tensors.error());
  const std::uint32_t experts = std::min(model.experts, k_experts_max);
  bench_backend made;
  const expected<void> ready =
      on_device ? make_device_backend(
                      made, identity, expert,
                      {.rows_max = shape.tokens, .k_max = model.top_k, .slots_max = experts},
                      {.ordinal = device->ordinal_or_first(), .spin = settings.transport.spin},
                      tensors->tensors())
                : make_host_backend(made, identity, expert, settings.worker.threads, experts,
                                    tensors->tensors());
  if (!ready) return tl::unexpected(ready.error());
  kernels::Backend& backend = *made.backend;
  const std::size_t row_bytes = 4 * std::size_t{model.hidden_size};
  const std::size_t work_bytes = backend.workspace_bytes(shape.tokens, model.top_k);
  aligned_bytes in(shape.tokens * row_bytes);
  aligned_bytes out(shape.tokens * row_bytes);
  aligned_bytes work(work_bytes);
  std::fill_n(reinterpret_cast<float*>(in.data()), shape.tokens * model.hidden_size, 0.5F);
  const watched_rows watched_in(made.row_memory.get(), in.span());
  const watched_rows watched_out(made.row_memory.get(), out.span());
  const kernels::row_region from{in.data(), row_bytes, shape.tokens};
  const kernels::out_region to{out.data(), row_bytes};

  std::vector<std::uint64_t> times;
  times.reserve(shape.calls);
  std::vector<kernels::expert_entry> entries;
  std::uint32_t first = 0;
  const std::uint32_t k = std::min(model.top_k, experts);
  for (std::uint32_t call = 0; call < shape.warmup + shape.calls; ++call) {
    entries.clear();
    for (std::uint32_t row = 0; row < shape.tokens; ++row) {
      for (std::uint32_t j = 0; j < k; ++j) {
        entries.push_back({.region = 0,
                           .row = row,
                           .position = static_cast<std::uint16_t>(j),
                           .slot = static_cast<std::uint16_t>((first + row + j) % experts),
                           .weight = 0.1F});
      }
    }
    first = (first + k) % experts;
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return std::tie(a.slot, a.row, a.position) < std::tie(b.slot, b.row, b.position);
    });
    const time_ns began = monotonic_now();
    const auto done = backend.run({.in = {&from, 1},
                                   .out = {&to, 1},
                                   .entries = entries,
                                   .pages = made.pages,
                                   .k_in = model.top_k,
                                   .mode = kernels::return_mode::partial,
                                   .workspace = work.span()});
    if (call >= shape.warmup) times.push_back(monotonic_now() - began);
    if (done != kernels::compute_status::ok) {
      return fail(reason::internal_error, "the backend refused the bench's rows");
    }
  }
  return times;
}

expected<std::vector<std::uint64_t>> echo_times(const transport::source_shape& source,
                                                const config::settings& settings,
                                                const bench_shape& shape) {
  const std::size_t row = source.hidden_stride + transport::record_stride(source.top_k);
  return run_ucx_echo({.options = {.listen = settings.transport.listen,
                                   .allow_tcp = settings.transport.allow_tcp != "off"},
                       .header_bytes = k_wire_header_bytes,
                       .out_bytes = shape.tokens * row,
                       .back_bytes = shape.tokens * std::size_t{source.return_stride},
                       .warmup = shape.warmup,
                       .calls = shape.calls});
}

}  // namespace moetier::cli
