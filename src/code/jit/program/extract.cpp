#include "code/jit/program/extract.hpp"

#include <llvm/ADT/IntEqClasses.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/made_once.hpp"
#include "base/mutex.hpp"
#include "code/jit/guard.hpp"
#include "code/jit/program/program.hpp"

namespace rove::code::jit {
namespace {

// A table that C++'s library fills for itself and nobody else can change: each package may have its own. Of others that the library's headers have
// some are changed by those who use them, or are of a program's own specialisations.
bool is_librarys_own_table(llvm::StringRef name) {
    if (!name.consume_front("_ZGV")) (void)name.consume_front("_Z");
    if (!name.consume_front("ZN")) return false;
    (void)name.consume_front("K");
    return name.starts_with("St8__detail") || name.starts_with("St7__cxx1112regex_traitsI");
}

// Which of them belong together, by their places; what cannot travel belongs to nobody.
std::vector<std::vector<std::size_t>> by_common_statics(const std::vector<Extracted>& all) {
    llvm::IntEqClasses classes(static_cast<unsigned>(all.size()));
    std::unordered_map<std::string, unsigned> first;  // that reaches a static
    for (unsigned i = 0; i < all.size(); ++i) {
        if (!all[i].obstacle.empty()) continue;
        for (const std::string& name : all[i].statics)
            if (!is_librarys_own_table(name)) classes.join(first.try_emplace(name, i).first->second, i);
    }
    classes.compress();
    std::vector<std::vector<std::size_t>> groups(classes.getNumClasses());
    for (unsigned i = 0; i < all.size(); ++i) groups[classes[i]].push_back(i);
    return groups;
}

// Of all functions of a program, each by itself, those that travel. `take` takes several together, by their keys.
template <typename Take>
Result<std::vector<Extracted>> join(std::vector<Extracted> alone, const Take& take) {
    std::vector<Extracted> all;
    for (const std::vector<std::size_t>& group : by_common_statics(alone)) {
        if (group.size() == 1) {
            all.push_back(std::move(alone[group.front()]));
            continue;
        }
        std::vector<std::string> keys;
        for (const std::size_t each : group) keys.push_back(alone[each].keys.front());
        ROVE_TRY(all.emplace_back(), take(keys));
    }
    return all;
}

// What a process takes out of itself, function by function, is read once.
struct Own {
    Mutex mutex;
    std::unique_ptr<Program> program GUARDED_BY(mutex);
    std::optional<std::vector<Extracted>> every GUARDED_BY(mutex);  // nothing: not found out yet
    const std::byte* of GUARDED_BY(mutex) = nullptr;

    Result<std::vector<Extracted>> extract(const ExtractRequest& request) REQUIRES(mutex) {
        if (of != request.bitcode.data()) {
            auto read = std::make_unique<Program>(request.program, request.bitcode, false);
            ROVE_CHECK(read->read());
            program = std::move(read);
            every.reset();
            of = request.bitcode.data();
        }
        std::vector<Extracted> all;
        if (request.only == kNothing) return all;
        ROVE_TRY(const std::string key, program->key_of(request.only));
        ROVE_TRY(Extracted alone, program->take({key}));
        if (!alone.obstacle.empty() || alone.statics.empty()) {
            all.push_back(std::move(alone));
            return all;
        }
        if (!every) {
            ROVE_TRY(every, extract_all());
        }
        all.push_back(*std::ranges::find_if(
            *every, [&](const Extracted& each) { return std::ranges::binary_search(each.keys, key); }));
        return all;
    }

    Result<std::vector<Extracted>> extract_all() REQUIRES(mutex) {
        Program& read = *program;
        std::vector<Extracted> alone;
        for (const std::string& key : read.keys()) {
            ROVE_TRY(alone.emplace_back(), read.take({key}));
        }
        return join(std::move(alone), [&read](const auto& keys) { return read.take(keys); });
    }
};

Result<std::vector<Extracted>> extract_own(const ExtractRequest& request) {
    static constinit MadeInEachProcess<Own> made;  // threads may be here when the process ends
    Own& own = made.get([] { return new Own; });
    const MutexLock lock(own.mutex);
    std::optional<Result<std::vector<Extracted>>> result;
    // In another thread, for which this one holds the lock.
    const Status ended =
        run_guarded(request.program, [&]() REQUIRES(own.mutex) { result.emplace(own.extract(request)); });
    if (ended) return std::move(*result);
    [[maybe_unused]] const Program* const lost = own.program.release();  // LLVM has given up in the middle of it
    own.of = nullptr;
    return tl::unexpected<Error>(ended.error());
}

// Reading a program takes as long as taking out ten functions.
constexpr std::size_t kFunctionsOfAThread = 25;

using Others = std::vector<std::future<Status>>;  // threads

// Takes every function that a program can send out of it. What is known from the last time, and has not changed, is not taken again.
class Every {
public:
    // others: outlives this. Where LLVM gives up, this stays as it is (guard.hpp), and whoever has `others` waits for them.
    Every(const ExtractRequest& request, Others& others)
        : request_(request),
          before_(request.before),
          others_(others),
          program_(request.program, request.bitcode, true, request.is_strong) {}

    Result<std::vector<Extracted>> extract() {
        ROVE_CHECK(program_.read());
        if (before_ != nullptr) program_.definitions().recall(*before_);
        const std::vector<std::string> keys = program_.keys();
        std::vector<Extracted> alone(keys.size());
        std::vector<std::size_t> rest;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            ROVE_TRY(std::optional<Extracted> known, known_of({keys[i]}));
            if (known)
                alone[i] = std::move(*known);
            else
                rest.push_back(i);
        }
        ROVE_CHECK(take_each(keys, rest, alone));
        for (const std::size_t each : rest) ROVE_CHECK(keep(alone[each]));
        const auto take = [this](const std::vector<std::string>& several) -> Result<Extracted> {
            ROVE_TRY(std::optional<Extracted> known, known_of(several));
            if (known) return std::move(*known);
            ROVE_TRY(Extracted taken, program_.take(several));
            ROVE_CHECK(keep(taken));
            return taken;
        };
        ROVE_TRY(std::vector<Extracted> all, join(std::move(alone), take));
        for (Extracted& each : all)
            if (each.obstacle.empty() && each.bitcode.empty() && !before_->has_package(each.digest)) {
                ROVE_TRY(each, program_.take(each.keys));
            }
        if (std::ranges::any_of(all, [](const Extracted& each) { return !each.statics.empty(); })) {
            Program as_written(request_.program, request_.bitcode, false, request_.is_strong);
            ROVE_CHECK(as_written.read());
            ROVE_CHECK(as_written.compare_statics(all));
        }
        if (before_ != nullptr) program_.definitions().note(*before_);
        return all;
    }

private:
    // Since the last time.
    Result<std::optional<Extracted>> known_of(const std::vector<std::string>& keys) {
        if (before_ == nullptr) return std::nullopt;
        ROVE_TRY(const std::optional<Digest> fingerprint, program_.fingerprint(keys));
        const Extracted* const known = fingerprint ? before_->find(*fingerprint) : nullptr;
        if (known == nullptr) return std::nullopt;
        Extracted extracted = *known;
        extracted.keys = keys;
        before_->keep(*fingerprint, extracted);
        return extracted;
    }
    Status keep(const Extracted& extracted) {
        if (before_ == nullptr) return {};
        ROVE_TRY(const std::optional<Digest> fingerprint, program_.fingerprint(extracted.keys));
        if (fingerprint) before_->keep(*fingerprint, extracted);
        return {};
    }

    // Those at these places, into their places, on all cores. Each thread reads the program for itself: what LLVM has read is one thread's.
    Status take_each(const std::vector<std::string>& keys, const std::vector<std::size_t>& places,
                     std::vector<Extracted>& alone) {
        const std::size_t threads =
            std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 1 + places.size() / kFunctionsOfAThread);
        // From the one at `first` on every `threads`th.
        const auto take_part = [&](Program& program, std::size_t first) -> Status {
            std::vector<std::string> own;
            for (std::size_t i = first; i < places.size(); i += threads) own.push_back(keys[places[i]]);
            ROVE_CHECK(program.optimise_shared(own));
            for (std::size_t i = first; i < places.size(); i += threads) {
                ROVE_TRY(alone[places[i]], program.take({keys[places[i]]}));
            }
            return {};
        };
        const struct Ends {
            Others& others;
            ~Ends() { others.clear(); }  // waits for each, before what they use goes
        } at_last{others_};
        for (std::size_t i = 1; i < threads; ++i) try {
                others_.push_back(std::async(std::launch::async, [this, &take_part, i] {
                    return guarded(request_.program, [this, &take_part, i]() -> Status {
                        Program program(request_.program, request_.bitcode, true, request_.is_strong);
                        ROVE_CHECK(program.read());
                        return take_part(program, i);
                    });
                }));
            } catch (const std::system_error&) {  // no thread to be had: this one does it
                break;
            }
        ROVE_CHECK(take_part(program_, 0));
        for (std::size_t i = others_.size() + 1; i < threads; ++i) ROVE_CHECK(take_part(program_, i));
        for (std::future<Status>& each : others_) ROVE_CHECK(each.get());
        return {};
    }

    const ExtractRequest& request_;
    ExtractedBefore* const before_;
    Others& others_;
    Program program_;
};

}  // namespace

Result<std::vector<Extracted>> extract(const ExtractRequest& request) {
    if (!request.only.empty()) return extract_own(request);
    Others others;  // these threads end before the request goes, also where LLVM gives up in this one
    return guarded(request.program,
                   [&]() -> Result<std::vector<Extracted>> { return Every(request, others).extract(); });
}

}  // namespace rove::code::jit
