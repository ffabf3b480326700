/* moetier.h: the C interface of a moetier tier, C11, libmoetier.so.1.
 *
 * A service is a connection to a coordinator; a session is one attention service's lease on the
 * tier. In a session the caller begins a step, calls its MoE layers (submit and collect, or forward
 * = both), and ends the step.
 *
 * Rules
 * - Loading the library does nothing: no thread, socket, signal handler or environment variable is
 * touched before moetier_service_open.
 * - Every struct starts with size and version: set size to sizeof(the struct) and version to
 * MOETIER_VERSION, all else to zero, then what you want. Zero means the default. Bytes that this
 * library does not know must be zero, else MOETIER_VERSION_MISMATCH: no wish is ignored. What is
 * known but not built yet is MOETIER_UNSUPPORTED. An older, shorter size ends where a field ends.
 * - Handles are opaque. Calls of a service are thread-safe; calls of one session are serialised by
 * the caller; sessions never wait for each other. A forked child may use no handle of its parent
 * (MOETIER_BAD_STATE).
 * - Tensors are DLPack's, owned by the caller, last dimension contiguous. All tensors of a call and
 * of its result lie at one place: in host memory (kDLCPU, kDLCUDAHost) or on one CUDA device
 * (kDLCUDA). Submit copies its inputs and returns, collect blocks, at most 100 ms past its deadline
 * and what a stream takes.
 * - A stream is NULL with host memory and in step_begin. On a device it is a CUstream
 * (cudaStream_t) of that device's primary context, and NULL is the legacy default stream. Submit
 * copies the inputs to pinned host memory behind what the stream holds and waits for the stream,
 * however long it takes; the deadline counts from then. Collect copies the result to the device
 * behind what its stream holds and returns when it is there, for every stream to read. A stream
 * that is being captured is MOETIER_BAD_STATE. The rows of a call that failed are not written.
 * - The CUDA driver (libcuda.so.1) is loaded by the first tensor that has rows on a device and by
 * nothing else; that call also pins host memory for the session's max_tokens. Without a driver or
 * that device it is MOETIER_UNSUPPORTED, and the text says what lacks. What the driver fails at is
 * MOETIER_DEVICE with the name of its error: in submit nothing was sent and the step goes on, in
 * collect the call has ended and its step is to be replayed.
 * - Nothing throws or aborts across this border. On a status other than MOETIER_OK,
 * moetier_last_error() says in one sentence what was given and what is allowed.
 */
#ifndef MOETIER_H_
#define MOETIER_H_

#include <stddef.h>
#include <stdint.h>

#include <dlpack/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MOETIER_API __attribute__((visibility("default")))
#else
#define MOETIER_API
#endif

#define MOETIER_VERSION 1u

typedef struct moetier_service moetier_service;
typedef struct moetier_session moetier_session;

/* Numbers keep their meaning for ever. */
typedef enum moetier_status {
  MOETIER_OK = 0,
  MOETIER_PENDING = 1,           /* the ticket has not ended */
  MOETIER_DEGRADED = 2,          /* rows usable, named (token, expert) pairs left out */
  MOETIER_SKIPPED = 3,           /* an earlier ticket of this step failed; replay the step */
  MOETIER_INVALID = 10,          /* argument, shape, dtype, id or bound */
  MOETIER_BAD_STATE = 11,        /* order of calls */
  MOETIER_UNSUPPORTED = 12,      /* the text says what lacks */
  MOETIER_VERSION_MISMATCH = 13, /* protocol or struct */
  MOETIER_MODEL_MISMATCH = 14,
  MOETIER_DENIED = 15,
  MOETIER_TIMEOUT = 20,          /* the text names the late worker; replay the step */
  MOETIER_STALE_GENERATION = 21, /* replay the step */
  MOETIER_UNAVAILABLE = 22,      /* an expert has no live replica, or the tier does not serve yet */
  MOETIER_OVERLOADED = 23,       /* wait retry_after_ns */
  MOETIER_CANCELLED = 24,
  MOETIER_SESSION_LOST = 25, /* open a new session */
  MOETIER_CORRUPT = 30,
  MOETIER_DEVICE = 31,
  MOETIER_NO_MEMORY = 32,
  MOETIER_INTERNAL = 39
} moetier_status;

/* The last failure of this thread; valid until the thread's next failure. */
typedef struct moetier_error {
  uint32_t size, version;
  uint32_t status;
  uint32_t retryable;      /* 1: the same request may succeed later, unchanged */
  const char* reason;      /* "invalid_expert": from a closed list */
  const char* text;        /* one sentence */
  uint64_t request_id;     /* 0 = not tied to a request */
  uint64_t retry_after_ns; /* 0 = no hint */
} moetier_error;

/* Who the caller is on a link inside TLS 1.3, by the paths of three PEM files. They are read at
 * moetier_service_open and again at each new connection, so that renewed ones are taken up. */
typedef struct moetier_tls {
  uint32_t size, version;
  const char* cert;        /* own certificate; its common name is the tenant */
  const char* key;         /* its key; nobody else may read the file */
  const char* ca;          /* the authority that the coordinator's certificate must be of */
  const char* server_name; /* whose certificate it must be; NULL = the address's host */
} moetier_tls;

typedef struct moetier_service_options {
  uint32_t size, version;
  const char* address;         /* "host:port" of the coordinator, or "unix:PATH" of its socket */
  const char* tenant;          /* NULL = "default", or as the certificate says */
  const moetier_tls* tls;      /* NULL = in the clear */
  uint64_t connect_timeout_ns; /* 0 = 5 s */
  uint64_t model_fingerprint;  /* 0 = any */
  /* When a call ends in MOETIER_TIMEOUT, the library's newest 4096 waits go into this file as JSON
   * (whom it waited for, bytes due and seen, age), at most every 10 s. NULL: they are not written. */
  const char* flight_file;
} moetier_service_options;

typedef struct moetier_model_info {
  uint32_t size, version;
  uint32_t hidden_size, intermediate_size, experts, top_k;
  uint32_t layers_total;
  uint32_t moe_layer_count;
  const uint16_t* moe_layers; /* ascending; valid while the service is open */
  uint64_t fingerprint;
  uint64_t epoch, generation;
  uint32_t workers, workers_live;
  uint32_t exact_allowed; /* return_mode exact can be had */
  uint32_t routing_method;
  char model_type[32];
  char carrier[32];
  char backend[64];
  uint32_t router_columns; /* of logits; more than experts where some experts are the identity */
  uint32_t shared_experts; /* that the tier can compute; 0 = none */
  uint32_t adapters;       /* 1: calls may name adapters */
} moetier_model_info;

enum {
  MOETIER_CLASS_DEFAULT = 0,
  MOETIER_CLASS_DECODE = 1,
  MOETIER_CLASS_PREFILL = 2,
  MOETIER_CLASS_BATCH = 3
};
enum { MOETIER_RETURN_PARTIAL = 0, MOETIER_RETURN_EXACT = 1 };
enum {
  MOETIER_DTYPE_AUTO = 0,
  MOETIER_DTYPE_F32 = 1,
  MOETIER_DTYPE_BF16 = 2,
  MOETIER_DTYPE_F16 = 3,
  MOETIER_DTYPE_FP8 = 4
};
enum { MOETIER_SIDE_CLIENT = 0, MOETIER_SIDE_TIER = 1 };
enum { MOETIER_ACK_AUTO = 0, MOETIER_ACK_MANUAL = 1 };
enum { MOETIER_BAD_ROWS_REJECT = 0, MOETIER_BAD_ROWS_FLAG = 1 };
enum { MOETIER_MISSING_FAIL = 0, MOETIER_MISSING_DEGRADE = 1, MOETIER_MISSING_WAIT = 2 };

typedef struct moetier_session_options {
  uint32_t size, version;
  uint32_t deadline_class;     /* default = the tenant's highest; one above it is DENIED */
  uint32_t max_tokens;         /* per micro-batch; 0 = the tier's limit */
  uint32_t micro_batches;      /* 1..4; 0 = 1 */
  uint32_t top_k;              /* up to the model's; 0 = the model's */
  uint32_t return_mode;        /* partial or exact */
  uint32_t max_rows_per_chunk; /* 0 = max_tokens */
  uint64_t call_deadline_ns;   /* 0 = the tier's */
  uint64_t step_deadline_ns;   /* 0 = the tier's */
  uint64_t open_timeout_ns;    /* 0 = 5 s */
  /* Not enabled yet: anything but 0 (or AUTO, F32 for the dtypes) is MOETIER_UNSUPPORTED. */
  uint32_t max_workers;
  uint32_t dispatch_dtype, return_dtype;
  /* TIER: the tier computes logits of calls that bring none; the tier adds the shared experts. */
  uint32_t gate, shared_experts;
  uint32_t ack;      /* not enabled yet: AUTO only */
  uint32_t bad_rows; /* FLAG: a bad row of logits gets ids -1 and a flag instead of an error */
  /* Not enabled yet: must be 0. */
  uint32_t on_missing;
  double max_missing_weight;
  uint32_t low_latency;
  uint32_t dry_run;
  const uint16_t* repeat_counts; /* per layer; a layer's first call tells it instead */
} moetier_session_options;

typedef struct moetier_step_options {
  uint32_t size, version;
  uint32_t replay;        /* 1: the same step once more, after a failed call */
  uint32_t warmup;        /* not enabled yet */
  uint64_t deadline_ns;   /* from now; 0 = the session's step deadline */
  const uint32_t* counts; /* not enabled yet: lockstep groups */
  uint32_t counts_length;
  uint32_t use_dp_padding;
} moetier_step_options;

typedef struct moetier_end_options {
  uint32_t size, version;
  uint32_t wait; /* host-memory steps have ended when their calls have */
} moetier_end_options;

typedef struct moetier_step_report {
  uint32_t size, version;
  uint32_t status; /* of the step's first failure, else OK */
  uint32_t attempts;
  uint64_t step, generation;
  uint64_t calls, replays, tokens; /* of this step */
} moetier_step_report;

typedef uint64_t moetier_ticket; /* 0 is never valid */

typedef struct moetier_call {
  uint32_t size, version;
  uint16_t layer;
  uint16_t micro_batch;
  uint16_t repeat_idx;
  uint16_t repeat_count;   /* 0 = 1 */
  const DLTensor* hidden;  /* [T, H] f32, f16 or bf16; NULL = no tokens */
  const DLTensor* logits;  /* [T, router_columns] f32, f16 or bf16; or NULL with ids and weights */
  const DLTensor* ids;     /* [T, k] i32 or i64; -1 = no expert */
  const DLTensor* weights; /* [T, k] f32 */
  uint64_t deadline_ns;    /* from now; 0 = the session's */
  const DLTensor* token_ids;   /* [T] i32 or i64; needed where the layer hashes them */
  const DLTensor* adapter_ids; /* [T] i32 or i64, -1 = none; NULL = none */
  /* Not enabled yet: must be NULL. */
  const DLTensor* token_count;
  void* hidden_ready;
} moetier_call;

typedef struct moetier_result {
  uint32_t size, version;
  const DLTensor* output;         /* [T, H] f32, f16 or bf16; may be hidden itself */
  const DLTensor* ids;            /* [T, k] i32: routing as it was used; NULL = not wanted */
  const DLTensor* weights;        /* [T, k] f32; no two of the three overlap */
  uint32_t accumulate;            /* not enabled yet */
  const DLTensor* missing_weight; /* not enabled yet */
  const DLTensor* bad_rows;       /* [T] u8, 1 = not routed; NULL = not wanted */
} moetier_result;

typedef struct moetier_pair {
  uint32_t token;
  uint32_t expert;
} moetier_pair;

enum {
  MOETIER_EVENT_GENERATION_READY = 1,
  MOETIER_EVENT_GENERATION_MOVED = 2,
  MOETIER_EVENT_MEMBERSHIP = 3,
  MOETIER_EVENT_SUSPECT = 4, /* the coordinator suspects other workers than before */
  MOETIER_EVENT_CREDITS = 5,
  MOETIER_EVENT_DRAIN = 6,
  MOETIER_EVENT_EXPERTS_MISSING = 7,
  MOETIER_EVENT_COORDINATOR_LOST = 8,
  MOETIER_EVENT_COORDINATOR_BACK = 9,
  MOETIER_EVENT_RECAPTURE = 10,
  MOETIER_EVENT_SESSION_LOST = 11,
  MOETIER_EVENT_OVERFLOW = 12 /* events were dropped before this one */
};

typedef struct moetier_event {
  uint32_t size, version;
  uint32_t kind;
  uint32_t workers_live;
  uint64_t epoch, generation;
} moetier_event;

typedef struct moetier_stats_snapshot {
  uint32_t size, version;
  uint64_t steps, calls, tokens, failures, replays;
  uint64_t epoch, generation;
  uint32_t workers, workers_live;
  /* Of the last collected call, nanoseconds. */
  uint64_t route_ns, pack_ns, wait_ns, sum_ns, total_ns;
  uint64_t late_returns; /* answers to exchanges that were given up: dropped unread */
  uint32_t max_tokens, micro_batches; /* as the tier granted them */
  /* air: from the last row's sending until the last return was in; held: of that, by the worker that
   * answered last, from the arrival of its rows to their return. air less held is the wire. */
  uint64_t air_ns, held_ns;
} moetier_stats_snapshot;

/* One per micro-batch, 64 bytes, written once per ticket; `status` last. */
typedef struct moetier_status_word {
  uint32_t status;
  uint16_t attempt, layer;
  uint64_t step, generation;
  uint16_t repeat_idx, late_worker;
  uint32_t missing_pairs;
  uint64_t bytes_due, bytes_seen, age_ns;
  float missing_weight;
  uint32_t reserved;
} moetier_status_word;

MOETIER_API uint32_t moetier_abi_version(void);
MOETIER_API const char* moetier_status_name(moetier_status status);
MOETIER_API const moetier_error* moetier_last_error(
    void); /* NULL before the thread's first failure */

MOETIER_API moetier_status moetier_service_open(const moetier_service_options* options,
                                                moetier_service** service);
MOETIER_API moetier_status moetier_service_info(moetier_service* service, moetier_model_info* info);
/* BAD_STATE while sessions are open. */
MOETIER_API moetier_status moetier_service_close(moetier_service* service);

MOETIER_API moetier_status moetier_session_open(moetier_service* service,
                                                const moetier_session_options* options,
                                                moetier_session** session);
/* Ends what is outstanding and frees the handle, whatever it returns (but for BAD_STATE after a
 * fork). */
MOETIER_API moetier_status moetier_session_close(moetier_session* session);
MOETIER_API moetier_status moetier_stats(moetier_session* session, moetier_stats_snapshot* stats);

/* options may be NULL; stream must be. MOETIER_OVERLOADED when the tenant's tokens a second are used
 * up, or for a moment after a worker had no time for a call: wait retry_after_ns. A step that began
 * is not held up by this any more, nor is its replay. */
MOETIER_API moetier_status moetier_step_begin(moetier_session* session,
                                              const moetier_step_options* options, void* stream);
/* options and report may be NULL. Returns the step's first failure. */
MOETIER_API moetier_status moetier_step_end(moetier_session* session,
                                            const moetier_end_options* options,
                                            moetier_step_report* report);

MOETIER_API moetier_status moetier_submit(moetier_session* session, const moetier_call* call,
                                          void* stream, moetier_ticket* ticket);
MOETIER_API moetier_status moetier_collect(moetier_session* session, moetier_ticket ticket,
                                           const moetier_result* result, void* stream);
MOETIER_API moetier_status moetier_forward(moetier_session* session, const moetier_call* call,
                                           const moetier_result* result, void* stream);
/* In: room for *count pairs; out: how many there are. Nothing is ever missing before on_missing is
 * enabled. */
MOETIER_API moetier_status moetier_missing(moetier_session* session, moetier_ticket ticket,
                                           moetier_pair* pairs, size_t* count);

/* Blocks up to timeout_ns; MOETIER_PENDING when no event came. Any thread. moetier_session_close
 * ends a wait that is under way at once, with MOETIER_CANCELLED; none may begin after it. */
MOETIER_API moetier_status moetier_next_event(moetier_session* session, moetier_event* event,
                                              uint64_t timeout_ns);
MOETIER_API int moetier_event_fd(
    moetier_session* session); /* readable while events wait; -1 on failure */
MOETIER_API moetier_status moetier_ack_generation(moetier_session* session, uint64_t generation);
MOETIER_API const volatile moetier_status_word* moetier_status_words(moetier_session* session,
                                                                     size_t* count);

#ifdef __cplusplus
}
#endif

#endif /* MOETIER_H_ */
