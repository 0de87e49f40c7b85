#include "node/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace rove {

spdlog::logger& log() {
    static spdlog::logger* const logger = [] {
        auto* made = new spdlog::logger(
            "rove", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());  // outlives all threads
        made->set_level(spdlog::level::warn);
        made->set_pattern("%H:%M:%S.%e %^%l%$ %v");
        return made;
    }();
    return *logger;
}

}  // namespace rove
