#include "workers/layer/visit_ledger.hpp"

#include <tuple>

#include "schemas/base/assert.hpp"

namespace moetier::workers {

visit_ledger::visit_ledger(std::uint32_t sources_max, LayerHooks& hooks)
    : hooks_(hooks), rows_(sources_max) {}

void visit_ledger::attach(source_id source, std::uint32_t layers) {
  MOETIER_ASSERT(source.value < rows_.size());
  detach(source);
  row& r = rows_[source.value];
  r.attached = true;
  for (lane& l : r.lanes) {
    l = lane{};
    l.layers.assign(layers, taken{});
  }
}

void visit_ledger::detach(source_id source) {
  if (source.value >= rows_.size()) return;
  row& r = rows_[source.value];
  for (lane& l : r.lanes) close(l);
  r.attached = false;
}

bool visit_ledger::begin(source_id source, const transport::exchange_key& key,
                         std::uint32_t layer_index) {
  if (source.value >= rows_.size() || !rows_[source.value].attached) return false;
  if (key.micro_batch >= k_micro_batches_max) return false;
  if (key.repeat_count == 0 || key.repeat_idx >= key.repeat_count) return false;
  if (key.chunk_count == 0 || key.chunk_count > k_chunks_max || key.chunk >= key.chunk_count) {
    return false;
  }
  lane& l = rows_[source.value].lanes[key.micro_batch];
  if (layer_index >= l.layers.size()) return false;
  const bool first_ever = !l.open && l.step == 0 && l.attempt == 0;
  if (!first_ever && std::tie(key.step, key.attempt) < std::tie(l.step, l.attempt)) return false;

  taken& t = l.layers[layer_index];
  const bool same_pass = t.any && t.step == key.step && t.attempt == key.attempt;
  if (same_pass) {
    if (key.repeat_idx < t.repeat_idx) return false;
    if (key.repeat_idx == t.repeat_idx && t.chunks.test(key.chunk)) return false;
  }
  if (!same_pass || key.repeat_idx != t.repeat_idx) t.chunks.reset();
  t.any = true;
  t.step = key.step;
  t.attempt = key.attempt;
  t.repeat_idx = key.repeat_idx;
  t.chunks.set(key.chunk);
  l.step = key.step;
  l.attempt = key.attempt;

  const bool goes_on = l.open && l.visit.step == key.step && l.visit.attempt == key.attempt &&
                       l.visit.layer_index == layer_index && l.visit.generation == key.generation;
  if (!goes_on) {
    close(l);
    l.visit = {.session = key.session,
               .source = source,
               .step = key.step,
               .attempt = key.attempt,
               .micro_batch = key.micro_batch,
               .layer_index = layer_index,
               .generation = key.generation};
    l.open = true;
    hooks_.layer_enter(l.visit);
    hooks_.layer_ready(l.visit);
  }
  return true;
}

void visit_ledger::end(source_id source, const transport::exchange_key& key) {
  MOETIER_ASSERT(source.value < rows_.size());
  lane& l = rows_[source.value].lanes[key.micro_batch];
  const bool last = key.repeat_idx + 1 == key.repeat_count && key.chunk + 1 == key.chunk_count;
  if (last) close(l);
}

void visit_ledger::close(lane& at) {
  if (!at.open) return;
  at.open = false;
  hooks_.weights_done(at.visit);
  hooks_.layer_exit(at.visit);
}

}  // namespace moetier::workers
