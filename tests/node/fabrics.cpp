#include "fabrics.hpp"

#include <atomic>

#include "../seed.hpp"
#include "api/access.hpp"
#include "base/result.hpp"
#include "fabric/loopback/chaos.hpp"
#include "fabric/loopback/loopback.hpp"

namespace rove::test {
namespace {

const std::shared_ptr<fabric::Exchange>& exchange() {
    static const auto exchange = std::make_shared<fabric::Exchange>();
    return exchange;
}

// Far enough from one another for the seeds that the links of each fabric make of its own.
std::uint64_t next_seed(std::uint64_t run = 0) {
    static std::atomic<std::uint64_t> opened{0};
    return seed() + 7919 * opened++ + 1'000'003 * run;
}

}  // namespace

Result<std::unique_ptr<fabric::Fabric>> open_loopback() {
    return fabric::LoopbackFabric::open(exchange());
}
template <std::uint64_t kRun>
Result<std::unique_ptr<fabric::Fabric>> open_chaos() {
    return fabric::open_chaos_fabric(exchange(), {.seed = next_seed(kRun)});
}
template Result<std::unique_ptr<fabric::Fabric>> open_chaos<0>();
template Result<std::unique_ptr<fabric::Fabric>> open_chaos<1>();
template Result<std::unique_ptr<fabric::Fabric>> open_chaos<2>();
Result<std::unique_ptr<fabric::Fabric>> open_chaos_that_cuts() {
    const std::uint64_t seed = next_seed();
    return fabric::open_chaos_fabric(exchange(), {.seed = seed, .frames_max = 20 + seed % 100});
}

Node TestFabric::start(NodeOptions options) const {
    if (options.engines == 1 && options.own_thread) options.engines = engines;
    if (joins_processes()) return Node(std::move(options));
    NodeCore::Fabrics fabrics;
    for (unsigned i = 0; i < options.engines; ++i) fabrics.push_back(value_or_throw(opens_in_test()));
    return detail::Inside::node(value_or_throw(NodeCore::create(std::move(options), std::move(fabrics))));
}

}  // namespace rove::test
