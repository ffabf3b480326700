#include "actors/http/worker_probe.hpp"

#include "actors/http/metric_text.hpp"

namespace moetier::http {

std::string worker_metrics(const worker_figures& f) {
  metric_text m;
  add_process_families(m, f.log_lines_dropped);
  // Over 120 layers the series would cost more than they tell.
  constexpr std::size_t k_layer_series_max = 120;
  m.counter("worker_rows_total", "Routed rows computed in the generation in service.");
  if (f.layers.size() <= k_layer_series_max) {
    for (const worker_layer_rows& l : f.layers) {
      m.sample(l.rows, {{"layer", std::to_string(l.layer.value)}});
    }
  }
  m.counter("worker_calls_total", "Exchanges answered.");
  m.sample(f.calls_total, {{"status", "ended"}});
  m.counter("worker_engine_rows_total", "Rows computed since the process started.");
  m.sample(f.rows_total);
  m.gauge("worker_generation", "Newest generation in service here.");
  m.sample(f.core.generation.value);
  m.gauge("worker_epoch", "Highest epoch seen.");
  m.sample(f.core.epoch.value);
  m.gauge("worker_lease", "1 while the coordinator answers this worker's beats in time.");
  m.sample(f.core.leased ? 1.0 : 0.0);
  m.gauge("worker_sources", "Attached sources.");
  m.sample(std::uint64_t{f.core.sources});
  m.gauge("worker_slots", "Slots of all layers by state.");
  m.sample(f.slots_filled, {{"state", "active"}});
  m.sample(f.slots_empty, {{"state", "empty"}});
  if (f.device != workers::device_bill{}) {
    m.gauge("worker_device_memory_bytes", "What this worker takes of its device, by use.");
    m.sample(std::uint64_t{f.device.pages}, {{"use", "pages"}});
    m.sample(std::uint64_t{f.device.workspace}, {{"use", "workspace"}});
    m.sample(std::uint64_t{f.device.calls}, {{"use", "calls"}});
  }
  m.gauge("worker_queue_rows", "Rows that wait for the engine, by deadline class.");
  for (const deadline_class c : k_all_deadline_classes) {
    m.sample(f.queue.rows_waiting[index_of(c)], {{"class", std::string(deadline_class_name(c))}});
  }
  m.counter("worker_deadline_missed_total", "Calls that ended, or would have ended, too late.");
  for (const deadline_class c : k_all_deadline_classes) {
    m.sample(f.queue.deadline_missed[index_of(c)],
             {{"class", std::string(deadline_class_name(c))}});
  }
  m.counter("worker_refused_total", "Calls that were given back without being computed.");
  m.sample(f.queue.refused_overloaded, {{"reason", "overloaded"}});
  m.sample(f.queue.refused_late, {{"reason", "deadline"}});
  m.sample(f.queue.given_up, {{"reason", "given_up"}});
  m.counter("worker_stale_commands_total", "Commands of older epochs, refused.");
  m.sample(f.core.stale_commands_refused);
  m.counter("transport_bytes_total", "Bytes over the data plane.");
  m.sample(f.carrier.bytes_sent, {{"direction", "sent"}});
  m.sample(f.carrier.bytes_received, {{"direction", "received"}});
  m.counter("transport_messages_total", "Messages over the data plane.");
  m.sample(f.carrier.messages_sent, {{"direction", "sent"}});
  m.sample(f.carrier.messages_received, {{"direction", "received"}});
  m.counter("transport_errors_total", "What went wrong on the data plane.");
  m.sample(f.carrier.frames_dropped, {{"reason", "frame_dropped"}});
  m.sample(f.carrier.late_returns, {{"reason", "late_return"}});
  m.sample(f.carrier.peers_lost, {{"reason", "peer_lost"}});
  return m.text();
}

}  // namespace moetier::http
