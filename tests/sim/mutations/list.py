"""Mistakes that the simulator must find: name, source file, what stands there, what stands there instead.

Each is one that somebody could make. A mistake that a second guard makes harmless does not belong here: it could not be
found by any run.
"""
COORDINATOR = "coordinator/core/"
WORKER = "workers/core/"
SOURCE = "transport/client/source/"
EXCHANGE = "transport/exchange/"

# Run by default; the others with MOETIER_FULL=1.
SHORT = ("older_epoch_obeyed", "reports_evict", "late_call_waits_for_ever")

MUTATIONS = (
    # --- epochs and the record ---
    ("older_epoch_obeyed", WORKER + "core.cpp", "if (epoch < highest) {", "if (false) {"),
    ("heartbeat_answer_lowers_the_epoch", WORKER + "beats.cpp", "if (m.epoch < highest) {", "if (false) {"),
    ("incarnation_not_compared", WORKER + "core.cpp",
     "if (incarnation == options.incarnation) return true;", "return true;"),
    ("loss_without_an_epoch", COORDINATOR + "members.cpp",
     "if (gone.in_group()) epoch_wanted = true;\n  gone.at", "gone.at"),
    ("failed_write_taken_for_done", COORDINATOR + "durable.cpp",
     "if (!e.done) return wait_for_disk(e.trouble, now);", ""),
    ("failed_write_never_tried_again", COORDINATOR + "durable.cpp", "emit(write_record{durable.epoch, *writing});", ""),
    ("two_writes_at_once", COORDINATOR + "durable.cpp",
     "if (writing) return;\n  const bool decide", "const bool decide"),
    ("session_ids_not_reserved", COORDINATOR + "sessions.cpp", "&& next_session < durable.next_session", ""),
    ("published_before_the_epoch_is_durable", COORDINATOR + "snapshots.cpp",
     "if (epoch_wanted || (writing && writing->epoch != durable.epoch)) return;", ""),
    ("start_does_not_collect", COORDINATOR + "durable.cpp", "collecting = plan.has_value();", "collecting = false;"),
    # --- plans ---
    ("decision_before_all_are_prepared", COORDINATOR + "first_plan.cpp",
     "if (m.at != member_stage::verified) return;", "if (m.at < member_stage::preparing) return;"),
    ("replicas_not_compared", COORDINATOR + "first_plan.cpp",
     "if (all[layer * p.dense_slots() + d] == all[layer * p.dense_slots() + replicas[0]])", "if (true)"),
    ("checksums_not_compared", COORDINATOR + "two_phases.cpp", "if (m.checksums != reference_of(m)) {", "if (false) {"),
    ("commit_of_what_is_not_loaded", WORKER + "plans.cpp", "!preparing->loaded || ", ""),
    ("repeated_commit_refused", WORKER + "plans.cpp",
     "if (serving && serving->generation == m.generation && serving->plan == m.plan) return say(done);", ""),
    ("hello_hides_what_is_held", WORKER + "core.cpp", "m.held = held();", ""),
    ("dead_workers_keep_their_shares", COORDINATOR + "snapshots.cpp",
     "s->shares = eplb::shares::over_live", "live.assign(live.size(), true);\n  s->shares = eplb::shares::over_live"),
    # --- sources and sessions ---
    ("attach_not_awaited", COORDINATOR + "attachments.cpp",
     "return (!m.second.live() && !is_shown_live(m.second)) ||\n             "
     "m.second.has_attached(s.source, s.attachment->incarnation);",
     "return m.first != \"\";"),
    ("repeated_attach_counts_for_all", COORDINATOR + "attachments.cpp",
     "  from.attached[m.source] = m.incarnation;\n  try_serve",
     "  if (from.has_attached(m.source, m.incarnation)) {\n"
     "    for (auto& [name, other] : members) other.attached.emplace(m.source, m.incarnation);\n  }\n"
     "  from.attached[m.source] = m.incarnation;\n  try_serve"),
    ("routed_to_without_all_sources", COORDINATOR + "two_phases.cpp",
     "if (!has_every_source(m) && now - m.since < options.attach_limit) return;", ""),
    ("place_given_on_without_a_detach", COORDINATOR + "attachments.cpp",
     "send(m, control::detach_source{durable.epoch, s.source, s.attachment->incarnation});", ""),
    ("older_session_replaces_a_newer", WORKER + "sources.cpp",
     "if (held->second.source.session > s.session) {", "if (false) {"),
    ("late_detach_ends_another_source", WORKER + "sources.cpp",
     " || held->second.source.incarnation != m.incarnation) return;\n  forget_source", ") return;\n  forget_source"),
    ("detached_source_taken_back", WORKER + "sources.cpp", "} else if (was_detached(s)) {", "} else if (false) {"),
    ("tokens_learned_from_rows", COORDINATOR + "attachments.cpp",
     "s.request.tokens_max = told.terms.tokens_max;", "s.request.tokens_max = told.rows_max;"),
    ("micro_batches_not_learned", COORDINATOR + "attachments.cpp",
     "s.request.micro_batches = told.terms.micro_batches;", ""),
    ("lease_never_lapses", COORDINATOR + "sessions.cpp", "if (now > s.lease_until) lapsed.push_back(id);", ""),
    ("lease_lapses_by_the_coordinators_stop", COORDINATOR + "core.cpp",
     "m.heard_at = now;\n  for (auto& [id, s] : sessions) s.lease_until += away;", "m.heard_at = now;"),
    ("adapter_listed_before_all_have_it", COORDINATOR + "adapters.cpp",
     "if (!a.dropping() && is_held_by_all(id)) ids", "if (!a.dropping()) ids"),
    # --- detection ---
    ("suspicion_evicts", COORDINATOR + "detection.cpp",
     "if (now - m.heard_at > timeout) silent", "if (now - m.heard_at > timeout / 2) silent"),
    ("silence_not_seen", COORDINATOR + "detection.cpp",
     "if (now - m.heard_at > timeout) silent.push_back(name);", ""),
    ("beats_without_progress_count", COORDINATOR + "detection.cpp",
     "return stands || m.oldest_batch_ns > options.heartbeat_timeout;", "return false && stands;"),
    ("repeated_beats_count", COORDINATOR + "detection.cpp", "if (m.sequence <= from.sequence) {", "if (false) {"),
    ("most_evicted_at_once", COORDINATOR + "detection.cpp",
     "if (suspect && now - m.heard_at <= 2 * timeout) continue;", ""),
    ("reports_evict", COORDINATOR + "detection.cpp",
     "send(m, control::probe{durable.epoch, m.told.incarnation});",
     "return lose(m, loss_cause::silent, \"a source said so\");"),
    ("own_stop_held_against_workers", COORDINATOR + "core.cpp",
     "for (auto& [name, m] : members) m.heard_at = now;", ""),
    ("short_stop_held_against_workers", COORDINATOR + "core.cpp",
     "if (away <= options.heartbeat_timeout) return discount(now, away);",
     "if (away <= options.heartbeat_timeout) return;"),
    ("impatient_after_its_own_stop", COORDINATOR + "members.cpp",
     "if (gone.live() && known && now < patient_until && !beat_since) {", "if (false) {"),
    ("worker_lease_never_lapses", WORKER + "beats.cpp",
     "joined && now - lease_from < options.heartbeat_timeout;", "joined;"),
    # --- source half and data plane ---
    ("late_call_waits_for_ever", SOURCE + "session.cpp",
     "if (c.call.outstanding() && now >= c.deadline) c.call.fail_late(workers_);", ""),
    ("waits_for_masked_workers", SOURCE + "session.cpp",
     "if (owes || !c.call.fully_sent()) c.call.fail_late_of(s, workers_);", ""),
    ("waits_for_suspects", SOURCE + "session.cpp",
     "if (c.times.replays >= options_.replays_max) continue;", "if (c.times.replays >= 0) continue;"),
    ("late_worker_avoided_before_a_suspect", SOURCE + "session.cpp",
     "return c.call.can_avoid(*snapshot_, workers_, suspects) ? suspects : all;", "return all;"),
    ("bank_of_a_given_up_call_kept", SOURCE + "session.cpp",
     "if (!taken) half_->release(report.ticket);", ""),
    ("new_process_taken_for_the_old", SOURCE + "worker_table.cpp",
     "return unmet || entry->incarnation == m.incarnation;", "return true;"),
    ("expert_without_replica_left_out", SOURCE + "call_rows.cpp",
     "if (missing >= 0) return fail(reason::no_replica, key.layer.value, missing);", ""),
    ("rows_summed_in_another_order", SOURCE + "call_rows.cpp",
     "const std::size_t pick = t * std::size_t{shape_.top_k} + j;\n"
     "    if (is_identity(pick)) {\n      terms_",
     "const std::size_t pick = t * std::size_t{shape_.top_k} + (shape_.top_k - 1 - j);\n"
     "    if (is_identity(pick)) {\n      terms_"),
    ("damaged_rows_delivered", EXCHANGE + "source_table.cpp",
     "complete && (x->payload_check == 0 || x->payload_check == crc32c(x->result.payload));", "complete;"),
    ("bank_free_before_its_late_return", EXCHANGE + "source_table.cpp",
     "x->state = exchange_state::late;", "x->state = exchange_state::free;"),
    ("return_of_another_exchange_taken", EXCHANGE + "source_table.cpp",
     "if (!waits || x.stamp != h.stamp || x.answered || !answers(h, x.key)) return drop();",
     "if (!waits) return drop();"),
)
