#pragma once
// A plain text table: columns as wide as their widest cell, numbers to the right. Thread: any (a
// value).

#include <cstddef>
#include <string>
#include <vector>

namespace moetier::cli {

class table final {
 public:
  explicit table(std::vector<std::string> heads) : rows_{std::move(heads)} {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;
  std::string markdown() const;  // the same columns, as README has them

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace moetier::cli
