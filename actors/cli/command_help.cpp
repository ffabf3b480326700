#include "actors/cli/command_help.hpp"

#include <algorithm>
#include <iterator>

namespace moetier::cli {
namespace {

constexpr command_help k_help[] = {
    {"", "A tier that holds the experts of a Mixture-of-Experts model and computes its MoE layers.",
     "  moetier doctor --model DIR           is this machine fit for it?\n"
     "  moetier up --model DIR --workers 2   a whole tier here, until Ctrl-C\n"
     "  moetier status                       what it does, from another terminal"},
    {"up",
     "Starts a coordinator and its workers as child processes, says one ready line with all\n"
     "addresses, starts again what dies (restart.budget), and ends with all of them. A worker that\n"
     "may not start again is given up while the others serve every expert. Ports that are not\n"
     "given are free ones, the state directory is a temporary one.",
     "  moetier up --model /models/my-moe --workers 3 --slots 24"},
    {"coordinator",
     "The control plane of a tier: waits for its workers, decides which expert sits where, serves\n"
     "clients' sessions and, by the gateway, thin clients' rows. Says one JSON line when it\n"
     "listens; SIGTERM drains, a second one ends it at once.",
     "  moetier coordinator --model /models/my-moe --workers 2 --state-dir /var/lib/moetier"},
    {"worker",
     "Holds experts and computes them. It joins the coordinator, loads what the placement gives\n"
     "it, and takes its old place again after a restart under the same name. Says one JSON line\n"
     "when it listens; SIGTERM drains.",
     "  moetier worker --model /models/my-moe --name worker@1 --coordinator 127.0.0.1:7401"},
    {"status", "Epoch, generation, members, sessions, load per layer of a running tier.",
     "  moetier status -o json"},
    {"placement", "What a running tier has decided about places.",
     "  moetier placement show -o json > plan.json"},
    {"placement show", "The committed placement; with -o json exactly what --placement takes.",
     "  moetier placement show -o json > plan.json"},
    {"placement heatmap",
     "For each layer the experts with the most rows lately, and on which workers they were "
     "computed.",
     "  moetier placement heatmap --layer 3 --top 8"},
    {"log-level",
     "Sets the least severe line that the coordinator and its workers log, until they end or\n"
     "`configured` gives each its own setting back. A change: see `moetier --help` on --address.",
     "  moetier log-level debug"},
    {"adapters", "Low-rank adapters of routed experts in a running tier; it needs moe.lora=on.",
     "  moetier adapters load my-task /adapters/my-task"},
    {"adapters list", "Which adapters are loaded, their ids, and which workers hold them.",
     "  moetier adapters list"},
    {"adapters load",
     "Every worker reads the directory, the same path on each machine; the answer has the id that\n"
     "calls name. When one worker refuses it, none keeps it.",
     "  moetier adapters load my-task /adapters/my-task"},
    {"adapters drop", "Calls can no longer name it; workers free its memory.",
     "  moetier adapters drop my-task"},
    {"forward",
     "Sends rows of a safetensors file through one MoE layer of a running tier and writes the\n"
     "result [T, H], or compares it with what the file expects (--check).",
     "  moetier forward --layer 3 --in rows.safetensors --out result.safetensors"},
    {"bench",
     "Measurements; each prints a table (--markdown: as README has it), or one JSON document with\n"
     "-o json. What --assert demands and a figure breaks is exit code 8.",
     "  moetier bench kernels --part experts"},
    {"bench tier",
     "A step of one call, again and again, of a direct session: percentiles, and where the time\n"
     "goes: route (with packing), wire, queue (at the worker, before it computes), compute, "
     "combine\n"
     "(the source's sum), and the rest. Beside it a bare UCX echo of the same bytes in the same "
     "run;\n"
     "the own share is the round trip less compute. --workers starts a tier for each number, "
     "whose\n"
     "workers tell their stages; without it the tier at --address is called, and the worker's "
     "part\n"
     "stays one. With several workers the parts are of the path of the one that answered last.",
     "  moetier bench tier --model /models/my-moe --workers 1,2,3 --tokens 1,16,256\n"
     "  moetier bench tier --tokens 16 --repeat 2000"},
    {"bench sessions",
     "The same tokens by one session and split over several, each on a thread of its own, against\n"
     "one tier: time, tokens a second, and what several cost over one. Rounds give each number of\n"
     "sessions its turn; the cost is the median of the ratios within rounds.",
     "  moetier bench sessions --model /models/my-moe --workers 1 --tokens 4,256 --assert "
     "cost=1.3"},
    {"bench wire",
     "Round trips without a tier: a bare UCX echo over shared memory and over TCP, and moetier's "
     "own\n"
     "exchange over its carriers with a worker that computes nothing. The rate one way stands "
     "beside\n"
     "memory copies of the same size in the same run.",
     "  moetier bench wire --hidden 7168 --rows 1,16,256 --mib 1,16"},
    {"bench kernels", "This machine's kernels, without a tier.",
     "  moetier bench kernels --part routing --repeat 60"},
    {"bench plan", "The planner, without a tier: balance, copies and time over recorded loads.",
     "  moetier bench plan --layers 24 --windows 8"},
    {"resolve",
     "The report of which backend and carrier run, and why not the others: offline for a model "
     "and\n"
     "machines that need not be there, or of a running tier.",
     "  moetier resolve --model /models/my-moe --workers 8\n"
     "  moetier resolve --live"},
    {"plan",
     "Reads how often each expert was chosen and writes a plan file that a tier can serve; needs "
     "no\n"
     "tier and no model.",
     "  moetier plan --counts loads.csv --workers 2 --out plan.json"},
    {"doctor",
     "Looks at this machine, the settings and the model, and says of each whether a tier would "
     "run\n"
     "well here: PASS, WARN or FAIL with what to do, SKIP with why nobody looked. Ends with 8 "
     "when\n"
     "anything fails.",
     "  moetier doctor --model /models/my-moe --workers 2\n"
     "  moetier doctor --config /etc/moetier/tier.yaml -o json\n"
     "  moetier doctor --answer 127.0.0.1:7410\n"
     "  moetier doctor --peers 127.0.0.1:7410,127.0.0.1:7400"},
};

constexpr std::string_view k_exit_codes =
    R"(Exit codes:
   0  done
   1  ran and failed with a typed error
   2  usage or configuration
   3  the coordinator is not reached
   4  refused or infeasible
   5  deadline passed
   6  degraded: rows usable, some left out
   7  an input file or the model is bad
   8  a check failed, or the tier is not ready
   9  an address is in use
  10  a GPU failed under a worker
  70  internal error)";

}  // namespace

const command_help* help_of(std::string_view path) noexcept {
  const auto at = std::find_if(std::begin(k_help), std::end(k_help),
                               [&](const command_help& h) { return h.path == path; });
  return at == std::end(k_help) ? nullptr : at;
}

std::string_view exit_codes_text() noexcept { return k_exit_codes; }

}  // namespace moetier::cli
