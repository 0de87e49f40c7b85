#include "bench/runs.hpp"

#include "bench/machine.hpp"

namespace rove::bench {

void Runs::tell(Row& row) const {
    for (const auto& [name, values] : theirs_) row.against[name] = median(values);
    for (const auto& [name, values] : ratios_) row.ratio[name] = median(values);
}

double Runs::middle() const {
    return median(ours_);
}

OneWay summary(std::vector<double> ns) {
    return {percentile(ns, 0), percentile(ns, 0.5), percentile(ns, 0.99), percentile(ns, 0.999)};
}

OneWay middle_of(const std::vector<OneWay>& runs) {
    const auto of = [&runs](double OneWay::* field) {
        std::vector<double> values;
        for (const OneWay& run : runs) values.push_back(run.*field);
        return median(values);
    };
    return {of(&OneWay::min), of(&OneWay::p50), of(&OneWay::p99), of(&OneWay::p999)};
}

}  // namespace rove::bench
