#pragma once
// Plots as SVG text: lines over steps, and a heat map. Thread: any (pure functions).

#include <string>
#include <vector>

namespace moetier::cli {

struct plot_line {
  std::string name;
  std::vector<double> values;
};
// Requires: lines of equal length, at least one point.
std::string svg_lines(const std::string& title, const std::string& x, const std::string& y,
                      const std::vector<plot_line>& lines);

struct heat_panel {
  std::string name;
  std::vector<std::vector<double>> rows;  // [step][column]; 1 = the mean
};
// Panels beside each other, one colour scale: white at 0, blue at 1, red at 2 and above.
std::string svg_heat(const std::string& title, const std::string& x, const std::string& y,
                     const std::vector<heat_panel>& panels);

}  // namespace moetier::cli
