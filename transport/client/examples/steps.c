/* Decodes with two micro-batches under way and runs a step again when a call of it failed:
 *   steps ADDRESS [COUNT]     COUNT steps, 3 unless given
 *   steps --actions           what to do for each status, one a line
 *
 *   cc -I. transport/client/examples/steps.c -Lbuild/release/lib -lmoetier -lm \
 *      -Wl,-rpath,$PWD/build/release/lib -o steps */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "transport/client/abi/moetier.h"

enum { TOKENS = 4, MICRO_BATCHES = 2, ATTEMPTS_MAX = 50 };

/* [example: action] */
enum action { GO_ON, COLLECT, REPLAY_STEP, WAIT_AND_REPLAY, FIX_CALL, REOPEN, STOP };

static enum action action_of(moetier_status status) {
  switch (status) {
    case MOETIER_OK:
    case MOETIER_DEGRADED: return GO_ON;
    case MOETIER_PENDING: return COLLECT;
    case MOETIER_SKIPPED:
    case MOETIER_TIMEOUT:
    case MOETIER_STALE_GENERATION:
    case MOETIER_CORRUPT: return REPLAY_STEP;
    case MOETIER_UNAVAILABLE:
    case MOETIER_OVERLOADED: return WAIT_AND_REPLAY;
    case MOETIER_INVALID:
    case MOETIER_BAD_STATE: return FIX_CALL;
    case MOETIER_CANCELLED:
    case MOETIER_SESSION_LOST: return REOPEN;
    case MOETIER_UNSUPPORTED:
    case MOETIER_VERSION_MISMATCH:
    case MOETIER_MODEL_MISMATCH:
    case MOETIER_DENIED:
    case MOETIER_DEVICE:
    case MOETIER_NO_MEMORY:
    case MOETIER_INTERNAL: return STOP;
  }
  return STOP;
}
/* [end] */

struct rows {
  float *hidden, *logits, *output;
  int64_t wide[2], columns[2];
};

static DLTensor tensor_of(float* data, int64_t* shape) {
  DLTensor tensor = {.data = data,
                     .device = {.device_type = kDLCPU, .device_id = 0},
                     .ndim = 2,
                     .dtype = {.code = kDLFloat, .bits = 32, .lanes = 1},
                     .shape = shape};
  return tensor;
}

/* [example: submit] */
static moetier_status submit(moetier_session* session, uint16_t layer, uint16_t micro_batch,
                             struct rows* rows, moetier_ticket* ticket) {
  DLTensor hidden = tensor_of(rows->hidden, rows->wide);
  DLTensor logits = tensor_of(rows->logits, rows->columns);
  moetier_call call = {.size = sizeof call, .version = MOETIER_VERSION};
  call.layer = layer;
  call.micro_batch = micro_batch; /* one ticket of each may be outstanding */
  call.hidden = &hidden;
  call.logits = &logits;
  return moetier_submit(session, &call, NULL, ticket);
}

static moetier_status collect(moetier_session* session, moetier_ticket ticket, struct rows* rows) {
  DLTensor output = tensor_of(rows->output, rows->wide);
  moetier_result result = {.size = sizeof result, .version = MOETIER_VERSION};
  result.output = &output;
  return moetier_collect(session, ticket, &result, NULL);
}

/* While one micro-batch is on the tier, the attention of the other would be computed here. */
static moetier_status all_layers(moetier_session* session, const moetier_model_info* model,
                                 struct rows rows[MICRO_BATCHES]) {
  moetier_ticket tickets[MICRO_BATCHES];
  moetier_status status = MOETIER_OK;
  for (uint32_t i = 0; i < model->moe_layer_count && status == MOETIER_OK; ++i) {
    for (uint16_t u = 0; u < MICRO_BATCHES && status == MOETIER_OK; ++u) {
      status = submit(session, model->moe_layers[i], u, &rows[u], &tickets[u]);
    }
    for (uint16_t u = 0; u < MICRO_BATCHES && status == MOETIER_OK; ++u) {
      status = collect(session, tickets[u], &rows[u]);
    }
  }
  return status;
}
/* [end] */

static void wait_for(uint64_t nanoseconds) {
  struct timespec pause = {.tv_sec = (time_t)(nanoseconds / 1000000000),
                           .tv_nsec = (long)(nanoseconds % 1000000000)};
  thrd_sleep(&pause, NULL);
}

/* [example: replay] */
/* One step, again as long as that may help. Sample from its rows only after OK; keys and values of
 * a position are written once more by each attempt, to the same place. */
static enum action run_step(moetier_session* session, const moetier_model_info* model,
                            struct rows* rows, moetier_step_report* report) {
  moetier_step_options options = {.size = sizeof options, .version = MOETIER_VERSION};
  enum action todo = STOP;
  int begun = 0;
  for (int attempt = 0; attempt < ATTEMPTS_MAX; ++attempt) {
    uint64_t pause = 0;
    moetier_status status;
    options.replay = begun != 0; /* the same step number, the next attempt */
    status = moetier_step_begin(session, &options, NULL);
    if (status == MOETIER_OK) {
      begun = 1;
      status = all_layers(session, model, rows);
      if (status != MOETIER_OK) pause = moetier_last_error()->retry_after_ns;
      const moetier_status ended = moetier_step_end(session, NULL, report);
      if (status == MOETIER_OK) status = ended;
    }
    todo = action_of(status);
    if (todo != REPLAY_STEP && todo != WAIT_AND_REPLAY) return todo;
    fprintf(stderr, "attempt %d: %s\n", attempt + 1, moetier_last_error()->text);
    if (todo == WAIT_AND_REPLAY) wait_for(pause > 0 ? pause : 100000000);
  }
  return todo;
}
/* [end] */

/* [example: events] */
/* What happened meanwhile, without waiting; an event loop polls the descriptor among its others. */
static void tell_events(moetier_session* session) {
  struct pollfd ready = {.fd = moetier_event_fd(session), .events = POLLIN};
  moetier_event event = {.size = sizeof event, .version = MOETIER_VERSION};
  while (poll(&ready, 1, 0) == 1 && moetier_next_event(session, &event, 0) == MOETIER_OK) {
    printf("event %u, generation %llu, %u workers live\n", event.kind,
           (unsigned long long)event.generation, event.workers_live);
  }
}
/* [end] */

static int fill(struct rows* rows, const moetier_model_info* model) {
  rows->wide[0] = rows->columns[0] = TOKENS;
  rows->wide[1] = model->hidden_size;
  rows->columns[1] = model->router_columns;
  rows->hidden = malloc(sizeof(float) * TOKENS * model->hidden_size);
  rows->output = malloc(sizeof(float) * TOKENS * model->hidden_size);
  rows->logits = malloc(sizeof(float) * TOKENS * model->router_columns);
  if (rows->hidden == NULL || rows->output == NULL || rows->logits == NULL) return 1;
  for (uint32_t i = 0; i < TOKENS * model->hidden_size; ++i)
    rows->hidden[i] = sinf(0.37f * (float)i);
  for (uint32_t i = 0; i < TOKENS * model->router_columns; ++i)
    rows->logits[i] = cosf(1.7f * (float)i);
  return 0;
}

static int print_actions(void) {
  static const char* names[] = {"go on",    "collect", "replay step", "wait and replay",
                                "fix call", "reopen",  "stop"};
  for (int number = 0; number <= MOETIER_INTERNAL; ++number) {
    const char* name = moetier_status_name((moetier_status)number);
    if (strcmp(name, "UNKNOWN") == 0) continue;
    printf("%s %d %s\n", name, number, names[action_of((moetier_status)number)]);
  }
  return 0;
}

int main(int argc, char** argv) {
  moetier_service* service;
  moetier_session* session;
  moetier_service_options where = {.size = sizeof where, .version = MOETIER_VERSION};
  moetier_session_options wish = {.size = sizeof wish, .version = MOETIER_VERSION};
  moetier_model_info model = {.size = sizeof model, .version = MOETIER_VERSION};
  moetier_step_report report = {.size = sizeof report, .version = MOETIER_VERSION};
  struct rows rows[MICRO_BATCHES];
  enum action todo = GO_ON;
  if (argc == 2 && strcmp(argv[1], "--actions") == 0) return print_actions();
  if (argc < 2) return fprintf(stderr, "usage: steps ADDRESS [COUNT] | steps --actions\n"), 2;
  const int count = argc > 2 ? atoi(argv[2]) : 3;
  where.address = argv[1];
  wish.max_tokens = TOKENS;
  wish.micro_batches = MICRO_BATCHES;
  if (moetier_service_open(&where, &service) != MOETIER_OK ||
      moetier_service_info(service, &model) != MOETIER_OK ||
      moetier_session_open(service, &wish, &session) != MOETIER_OK) {
    return fprintf(stderr, "%s\n", moetier_last_error()->text), 1;
  }
  for (int u = 0; u < MICRO_BATCHES; ++u) {
    if (fill(&rows[u], &model) != 0) return 1;
  }
  for (int step = 0; step < count && todo == GO_ON; ++step) {
    todo = run_step(session, &model, rows, &report);
    printf("step %llu: %llu calls, attempt %u, %s\n", (unsigned long long)report.step,
           (unsigned long long)report.calls, report.attempts,
           moetier_status_name((moetier_status)report.status));
    fflush(stdout);
    tell_events(session);
  }
  for (int u = 0; u < MICRO_BATCHES; ++u) {
    free(rows[u].hidden);
    free(rows[u].output);
    free(rows[u].logits);
  }
  moetier_session_close(session);
  moetier_service_close(service);
  return todo == GO_ON ? 0 : 1;
}
