#pragma once
// What became of one candidate over all workers: equal rejections are told once, with the workers
// that gave them. Thread: any (a value).

#include <string>
#include <vector>

#include "coordinator/resolution/request.hpp"
#include "schemas/resolution/report.hpp"
#include "schemas/resolution/verdict.hpp"

namespace moetier::coordinator {

class answers final {
 public:
  explicit answers(std::string candidate) : candidate_(std::move(candidate)) {}

  // Offline an abstention is a possibility, else a rejection.
  void add(const std::string& worker, const resolution::verdict& v, bool offline);
  // The same rejection on all workers.
  void add_everywhere(const resolution_request& request, resolution::reject_reason why,
                      const std::string& detail);
  // A failed PREPARE or a rest, where the request names the candidate.
  void add_history(const resolution_request& request);

  bool eligible() const noexcept { return rejected_.empty() && possible_.empty(); }
  bool possible() const noexcept { return rejected_.empty() && !possible_.empty(); }
  const std::string& candidate() const noexcept { return candidate_; }
  const std::vector<resolution::rejection>& rejected() const noexcept { return rejected_; }

  // Appends what does not run: possibilities only where nothing was rejected.
  void tell(std::vector<resolution::rejection>& rejected,
            std::vector<resolution::possibility>& possible) const;

 private:
  std::string candidate_;
  std::vector<resolution::rejection> rejected_;
  std::vector<resolution::possibility> possible_;
};

}  // namespace moetier::coordinator
