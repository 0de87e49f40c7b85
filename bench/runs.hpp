// Figures of several runs, and of several samples in one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/report.hpp"

namespace rove::bench {

// The figures of several runs: ours, theirs, and their ratio within each run.
class Runs {
public:
    void add(double value) { ours_.push_back(value); }
    void against(const std::string& name, double theirs) {
        theirs_[name].push_back(theirs);
        ratios_[name].push_back(ours_.back() / theirs);
    }
    void tell(Row& row) const;
    [[nodiscard]] double middle() const;

private:
    std::vector<double> ours_;
    std::map<std::string, std::vector<double>> theirs_, ratios_;
};

[[nodiscard]] OneWay summary(std::vector<double> ns);             // of one run's samples
[[nodiscard]] OneWay middle_of(const std::vector<OneWay>& runs);  // the medians over the runs

}  // namespace rove::bench
