/* Opens a tier and runs one step through all its MoE layers: layer_call ADDRESS.
 *
 *   cc -I. transport/client/examples/layer_call.c -Lbuild/release/lib -lmoetier -lm \
 *      -Wl,-rpath,$PWD/build/release/lib -o layer_call */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/client/abi/moetier.h"

enum { TOKENS = 5 };

/* [example: tell] */
/* What the thread's last call refused or missed, for a log. */
static int tell(const char* call, moetier_status status) {
  const moetier_error* error = moetier_last_error();
  fprintf(stderr, "%s: %s: %s\n", call, moetier_status_name(status), error->text);
  return 1;
}
/* [end] */

/* [example: tensor] */
/* Rows of the caller's memory as DLPack names them; shape must live as long as the tensor. */
static DLTensor rows_of(float* data, int64_t shape[2]) {
  DLTensor tensor = {.data = data,
                     .device = {.device_type = kDLCPU, .device_id = 0},
                     .ndim = 2,
                     .dtype = {.code = kDLFloat, .bits = 32, .lanes = 1},
                     .shape = shape};
  return tensor;
}
/* [end] */

static int run_step(moetier_session* session, const moetier_model_info* model) {
  int64_t wide[2] = {TOKENS, model->hidden_size};
  int64_t columns[2] = {TOKENS, model->router_columns};
  float* x = malloc(sizeof *x * (size_t)(wide[0] * wide[1]));
  float* y = malloc(sizeof *y * (size_t)(wide[0] * wide[1]));
  float* l = malloc(sizeof *l * (size_t)(columns[0] * columns[1]));
  DLTensor hidden, output, logits;
  moetier_step_report report = {.size = sizeof report, .version = MOETIER_VERSION};
  moetier_status status;
  double sum = 0;
  int failed = 0;
  if (x == NULL || y == NULL || l == NULL) return 1;
  for (int64_t i = 0; i < wide[0] * wide[1]; ++i) x[i] = sinf(0.37f * (float)i);
  for (int64_t i = 0; i < columns[0] * columns[1]; ++i) l[i] = cosf(1.7f * (float)i);
  hidden = rows_of(x, wide);
  output = rows_of(y, wide);
  logits = rows_of(l, columns);

  /* [example: step] */
  status = moetier_step_begin(session, NULL, NULL);
  if (status != MOETIER_OK) failed = tell("step_begin", status);
  for (uint32_t i = 0; i < model->moe_layer_count && !failed; ++i) {
    moetier_call call = {.size = sizeof call, .version = MOETIER_VERSION};
    moetier_result result = {.size = sizeof result, .version = MOETIER_VERSION};
    call.layer = model->moe_layers[i];
    call.hidden = &hidden;
    call.logits = &logits; /* or ids and weights */
    result.output = &output;
    status = moetier_forward(session, &call, &result, NULL);
    if (status != MOETIER_OK) failed = tell("forward", status);
  }
  status = moetier_step_end(session, NULL, &report);
  if (status != MOETIER_OK) failed = tell("step_end", status);
  /* [end] */

  for (int64_t i = 0; i < wide[0] * wide[1]; ++i) sum += fabs(y[i]);
  if (!failed) printf("%llu layers, sum %.6g\n", (unsigned long long)report.calls, sum);
  free(x);
  free(y);
  free(l);
  return failed;
}

int main(int argc, char** argv) {
  moetier_status status;
  int failed;
  if (argc != 2) return fprintf(stderr, "usage: layer_call ADDRESS\n"), 2;

  /* [example: open] */
  moetier_service* service;
  moetier_session* session;
  moetier_service_options where = {.size = sizeof where, .version = MOETIER_VERSION};
  moetier_session_options wish = {.size = sizeof wish, .version = MOETIER_VERSION};
  moetier_model_info model = {.size = sizeof model, .version = MOETIER_VERSION};
  where.address = argv[1]; /* "host:port" of the coordinator */
  wish.max_tokens = 256;   /* of one call; buffers for it are made now */
  status = moetier_service_open(&where, &service);
  if (status != MOETIER_OK) return tell("service_open", status);
  status = moetier_service_info(service, &model);
  if (status != MOETIER_OK) return tell("service_info", status);
  status = moetier_session_open(service, &wish, &session);
  if (status != MOETIER_OK) return tell("session_open", status);
  /* [end] */

  failed = run_step(session, &model);

  /* [example: close] */
  status = moetier_session_close(session); /* ends what is outstanding, gives the lease back */
  if (status != MOETIER_OK) failed = tell("session_close", status);
  status = moetier_service_close(service);
  if (status != MOETIER_OK) failed = tell("service_close", status);
  /* [end] */
  return failed;
}
