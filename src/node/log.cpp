#include "node/log.hpp"

#include <spdlog/sinks/ansicolor_sink-inl.h>  // spdlog's library has it for its own locks only

#include "base/made_once.hpp"

namespace rove {

namespace {

// What spdlog's sinks for terminals lock while they write: one that a fork's child finds free.
struct HeldAcrossForks {
    using mutex_t = std::mutex;
    static mutex_t& mutex() {
        static constinit MadeOnce<std::mutex> kept;
        return kept.get([] {
            auto* made = new std::mutex;
            hold_across_forks(*made);
            return made;
        });
    }
};

}  // namespace

spdlog::logger& log() {
    static constinit MadeOnce<spdlog::logger> logger;
    return logger.get([] {
        auto* made =
            new spdlog::logger("rove", std::make_shared<spdlog::sinks::ansicolor_stderr_sink<HeldAcrossForks>>());
        made->set_level(spdlog::level::warn);
        made->set_pattern("%H:%M:%S.%e %^%l%$ %v");
        return made;
    });
}

}  // namespace rove
