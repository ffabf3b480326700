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
    ("published_before_the_epoch_is_durable", COORDINATOR + "snapshots.cpp",
     "if (epoch_wanted || (writing && writing->epoch != durable.epoch)) return;", ""),
    ("start_does_not_collect", COORDINATOR + "durable.cpp", "collecting = plan.has_value();", "collecting = false;"),
    # --- plans ---
    ("decision_before_all_are_prepared", COORDINATOR + "first_plan.cpp",
     "if (m.at != member_stage::verified) return;", "if (m.at < member_stage::preparing) return;"),
    ("replicas_not_compared", COORDINATOR + "first_plan.cpp",
     "if (all[layer * p.dense_slots() + d] == all[layer * p.dense_slots() + replicas[0]])", "if (true)"),
    ("checksums_not_compared", COORDINATOR + "two_phases.cpp", "if (m.checksums != reference_of(m)) {", "if (false) {"),
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
     "for (const worker_mask avoid : {all, suspects, unreachable}) {",
     "for (const worker_mask avoid : {all, unreachable}) {"),
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
    ("return_of_another_exchange_taken", EXCHANGE + "source_table.cpp",
     "if (!waits || x.stamp != h.stamp || x.answered || !answers(h, x.key)) return drop();",
     "if (!waits) return drop();"),
)

# The first seed that finds each, and the rule that it breaks there.
FOUND_BY = {
    "older_epoch_obeyed": (6, "a worker obeyed an older epoch"),
    "heartbeat_answer_lowers_the_epoch": (6, "a worker obeyed an older epoch"),
    "incarnation_not_compared": (579, "a worker obeyed what an earlier process of its name was told"),
    "loss_without_an_epoch": (1, "a worker is masked before the epoch without it is durable"),
    "failed_write_taken_for_done": (49, "COMMIT was sent before its decision was durable"),
    "two_writes_at_once": (1, "two writes of the record at once"),
    "published_before_the_epoch_is_durable": (1, "a worker is masked before the epoch without it is durable"),
    "start_does_not_collect": (9, "worker-N is left out; nothing happened to it"),
    "decision_before_all_are_prepared": (1, "a crash"),
    "replicas_not_compared": (14, "a wrong row was delivered to service N"),
    "checksums_not_compared": (650, "a wrong row was delivered to service N"),
    "repeated_commit_refused": (1, "a repeated COMMIT of what is served was not answered"),
    "hello_hides_what_is_held": (472, "worker-N is left out; nothing happened to it"),
    "dead_workers_keep_their_shares": (1, "a masked worker has a share"),
    "attach_not_awaited": (1, "session N was told attached; worker worker-N has not got it"),
    "repeated_attach_counts_for_all": (247, "worker-N is routed to without a source of session N"),
    "routed_to_without_all_sources": (1, "session N was given up before its time"),
    "place_given_on_without_a_detach": (9, "worker-N has 4 sources; there are 2 sessions"),
    "detached_source_taken_back": (1114, "a call of service N ended TIMEOUT though all faults are over"),
    "tokens_learned_from_rows": (17, "session N was resumed on other terms"),
    "micro_batches_not_learned": (17, "session N was resumed on other terms"),
    "lease_never_lapses": (2, "service N has no session"),
    "lease_lapses_by_the_coordinators_stop": (1, "session N lapsed though its client kept it"),
    "adapter_listed_before_all_have_it": (9, "an adapter is listed that a live worker does not hold"),
    "suspicion_evicts": (30, "worker-N is left out before its time"),
    "silence_not_seen": (1, "worker N is not in service"),
    "beats_without_progress_count": (54, "worker-N stands still for 1324 ms and is routed to"),
    "most_evicted_at_once": (131, "most workers are left out at once, without a second look"),
    "reports_evict": (105, "worker-N is left out; nothing happened to it"),
    "own_stop_held_against_workers": (456, "worker-N is left out; nothing happened to it"),
    "short_stop_held_against_workers": (1635, "worker-N is left out; nothing happened to it"),
    "impatient_after_its_own_stop": (249, "worker-N is left out; nothing happened to it"),
    "worker_lease_never_lapses": (2, "worker-N believes in its lease though nobody answered"),
    "waits_for_suspects": (15, "service N waited for a suspect whose rows lie elsewhere too"),
    "late_worker_avoided_before_a_suspect": (265, "service N waited for a suspect whose rows lie elsewhere too"),
    "new_process_taken_for_the_old": (1, "a call of service N ended TIMEOUT though all faults are over"),
    "expert_without_replica_left_out": (2, "a wrong row was delivered to service N"),
    "rows_summed_in_another_order": (1, "a wrong row was delivered to service N"),
    "damaged_rows_delivered": (31, "a wrong row was delivered to service N"),
    "return_of_another_exchange_taken": (12, "a wrong row was delivered to service N"),
}

# Left out of the list, as something else makes them harmless in every run here.
GUARDED = {
    "older_session_replaces_a_newer":
        "no place is given on within the three seconds of a late copy (1,200 seeds); "
        "worker_core.a_late_attach_of_an_older_session_does_not_take_a_place_from_a_newer_one finds it",
    "late_detach_ends_another_source":
        "the same; worker_core.a_newer_incarnation_replaces_a_source_and_a_late_detach_leaves_it finds it",
    "session_ids_not_reserved":
        "16 ids are in reserve while a write of at most 20 ms is on its way; "
        "coordinator_sessions.an_open_waits_for_a_reserved_id_and_is_answered_once finds it",
    "commit_of_what_is_not_loaded":
        "COMMIT follows the PREPARED of the same process, which unloads nothing that is decided; "
        "worker_core.commit_activates_exactly_what_was_prepared_or_nothing finds it",
    "bank_of_a_given_up_call_kept":
        "a return is polled before anybody gives its call up, and a lost pair's banks are made anew",
    "bank_free_before_its_late_return":
        "the worker drops a dispatch into a bank that is in use, and that call ends late, as calls may while "
        "faults last",
}
