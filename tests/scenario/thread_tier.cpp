#include "tests/scenario/thread_tier.hpp"

#include <future>
#include <stdexcept>
#include <utility>

namespace moetier::scenario {
namespace {

template <class T>
T must(expected<T> value) {
  if (!value) throw std::runtime_error(value.error().text);
  return std::move(*value);
}

}  // namespace

struct thread_tier::worker {
  std::unique_ptr<workers::quantising_source> quantising;
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<workers::expert_store> store;
  std::unique_ptr<transport::WorkerHalf> half;
  std::unique_ptr<workers::engine> engine;
  std::promise<bool> attached;
};

thread_tier::thread_tier(const std::string& model_dir, std::vector<std::uint32_t> slots, parts with)
    : checkpoint_(must(workers::checkpoint::open(model_dir, {.routers = true}))),
      carrier_(with.carrier == "in_process" ? transport::make_in_process({}, &hooks_)
                                            : must(transport::open_carrier(with.carrier, {}))),
      live_(slots.size(), true) {
  std::vector<eplb::worker_span> spans;
  std::uint32_t first = 0;
  for (std::size_t w = 0; w < slots.size(); ++w) {
    spans.push_back({worker_id{static_cast<std::uint16_t>(w)},
                     std::string("w").append(std::to_string(w)), first, slots[w]});
    first += slots[w];
  }
  auto snapshot = std::make_shared<transport::routing_snapshot>();
  snapshot->generation = generation_number{1};
  snapshot->plan = plan_hash{1};
  snapshot->model = model();
  snapshot->routing = {model().routing, model().experts, model().top_k};
  snapshot->placement = must(eplb::default_placement(model().experts, model().moe_layers, spans));
  snapshot->tables =
      std::make_shared<const routing_tables>(must(checkpoint_->read_routing_tables()));
  snapshot->shared_experts = model().shared.count;
  snapshot->exact_allowed = true;
  snapshot->carrier = "in_process";

  for (std::size_t w = 0; w < slots.size(); ++w) {
    auto made = std::make_unique<worker>();
    const model_description* held = &model();
    workers::expert_source* source = checkpoint_.get();
    if (with.quantise && *with.quantise != held->format.quant) {
      made->quantising =
          must(workers::quantising_source::create(*checkpoint_, model(), *with.quantise));
      source = made->quantising.get();
      held = &made->quantising->model();
    }
    made->backend =
        must(kernels::make_cpu_backend(with.backend,
                                       {model().hidden_size, model().intermediate_size,
                                        held->format, model().activation.kind, model().expert_bias},
                                       {}, kernels::detect_cpu_features()));
    made->store = must(workers::expert_store::create({.slots = slots[w],
                                                      .spare_pages = 0,
                                                      .shared = model().shared.count,
                                                      .memory_max_bytes = std::size_t{1} << 32},
                                                     *held, *made->backend, *source));
    std::vector<workers::layer_slots> rows;
    for (const eplb::layer_slots& l : snapshot->placement.layers()) {
      const auto from = l.experts.begin() + snapshot->placement.first_dense(w);
      rows.push_back({l.layer, {from, from + slots[w]}});
    }
    must(made->store->prepare(generation_number{1}, plan_hash{1}, rows));
    const auto table = must(made->store->activate(generation_number{1}, plan_hash{1}));
    const transport::worker_identity self{worker_id{static_cast<std::uint16_t>(w)},
                                          incarnation_id{100 + w}};
    made->half = must(carrier_->make_worker({.identity = self}));
    worker* at = made.get();
    made->engine = std::make_unique<workers::engine>(
        workers::engine_options{.layers = static_cast<std::uint32_t>(model().moe_layers.size()),
                                .rows_max = 4096,
                                .top_k_max = model().top_k + model().shared.count},
        *made->backend, *made->half,
        workers::engine::sinks{
            .on_attached =
                [at](const workers::source_attach_done& d) { at->attached.set_value(d.accepted); },
            .on_released = [](const workers::pages_released&) {},
            .on_drained = [] {}});
    made->engine->start();
    made->engine->post_serve(table, spans[w].first_slot);
    snapshot->workers.push_back({self.worker, self.incarnation, true, made->half->address()});
    workers_.push_back(std::move(made));
  }
  snapshot_ = snapshot;
  publish(revisions_);
}

thread_tier::~thread_tier() {
  for (auto& w : workers_) w->engine->stop();
}

void thread_tier::publish(std::uint32_t counter) {
  auto next = std::make_shared<transport::routing_snapshot>(*snapshot_);
  next->shares = eplb::shares::even(next->placement, live_, {epoch_number{1}, counter});
  for (std::size_t w = 0; w < live_.size(); ++w) next->workers[w].live = live_[w];
  snapshot_ = std::move(next);
}

std::uint64_t thread_tier::counted() {
  std::uint64_t all = 0;
  for (auto& w : workers_) {
    for (const std::uint64_t count : w->engine->progress(true).counts) all += count;
  }
  return all;
}

void thread_tier::kill(std::size_t index) {
  hooks_.kill({transport::member_role::worker, static_cast<std::uint16_t>(index)});
  live_[index] = false;
  publish(++revisions_);
}

void thread_tier::mask(std::size_t index, bool masked) {
  live_[index] = !masked;
  publish(++revisions_);
}

std::unique_ptr<client::source_session> thread_tier::session(
    client::source_session_options options) {
  const source_id source{next_source_++};
  options.session = session_id{1U + source.value};
  options.source = source;
  options.incarnation = incarnation_id{1000U + source.value};
  options.top_k = model().top_k;
  options.call_deadline =
      60 * k_second;  // slow is not wrong: sanitized, the reference takes its time
  options.newest = [this] { return snapshot_; };
  options.wait_newer = [this](const transport::routing_snapshot& seen, duration_ns) {
    return transport::is_newer(*snapshot_, seen) ? snapshot_ : nullptr;
  };
  options.router = [this](std::size_t index) -> expected<client::layer_router_ptr> {
    auto read = checkpoint_->read_router(model().moe_layers[index]);
    if (!read) return tl::unexpected(read.error());
    return std::make_shared<const client::layer_router>(
        client::layer_router{.type = read->element,
                             .columns = model().columns(),
                             .width = model().router_width,
                             .matrix = std::move(read->bytes),
                             .bias = std::move(read->bias)});
  };
  if (!model().router_reads_hidden || model().router_width != model().hidden_size)
    options.router = {};
  auto made = must(client::source_session::open(*carrier_, options, snapshot_));
  const transport::source_shape& shape = made->shape();
  const transport::member_address& address = made->address();
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(address.data());
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    if (!live_[w]) continue;
    workers_[w]->attached = {};
    workers_[w]->engine->post_attach({.source = source,
                                      .session = options.session,
                                      .incarnation = options.incarnation,
                                      .rows_max = shape.rows_max,
                                      .hidden_stride = shape.hidden_stride,
                                      .top_k = shape.top_k,
                                      .return_stride = shape.return_stride,
                                      .return_rows_max = shape.return_rows_max,
                                      .banks = shape.banks,
                                      .terms = {},
                                      .tenant = {},
                                      .address = {bytes, bytes + address.size()}});
    if (!workers_[w]->attached.get_future().get()) throw std::runtime_error("attach refused");
  }
  return made;
}

}  // namespace moetier::scenario
