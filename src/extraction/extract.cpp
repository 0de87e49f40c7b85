#include "extraction/extract.hpp"

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
#include "bitcode/guard.hpp"
#include "extraction/program.hpp"

namespace rove::bitcode {
namespace {

// A table that C++'s library fills for itself and no other code can change: each package may have its own. Of other tables in the library's
// headers some are changed by their users, or belong to a program's own specialisations.
bool is_librarys_own_table(llvm::StringRef name) {
    if (!name.consume_front("_ZGV")) (void)name.consume_front("_Z");
    if (!name.consume_front("ZN")) return false;
    (void)name.consume_front("K");
    return name.starts_with("St8__detail") || name.starts_with("St7__cxx1112regex_traitsI");
}

// Groups the functions that belong together, by their places; a function that cannot travel belongs to no group.
std::vector<std::vector<std::size_t>> by_common_statics(const std::vector<Extracted>& all) {
    llvm::IntEqClasses classes(static_cast<unsigned>(all.size()));
    std::unordered_map<std::string, unsigned> first;  // the first function that reaches a static, by its name
    for (unsigned i = 0; i < all.size(); ++i) {
        if (!all[i].facts.obstacle.empty()) continue;
        for (const std::string& name : all[i].facts.statics)
            if (!is_librarys_own_table(name)) classes.join(first.try_emplace(name, i).first->second, i);
    }
    classes.compress();
    std::vector<std::vector<std::size_t>> groups(classes.getNumClasses());
    for (unsigned i = 0; i < all.size(); ++i) groups[classes[i]].push_back(i);
    return groups;
}

// All functions of a program that travel, each taken alone. `take` takes several together, by their keys.
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

// For a process that takes functions out of its own program one by one: the program is read once.
struct Own {
    Mutex mutex;
    std::unique_ptr<Program> program GUARDED_BY(mutex);
    std::optional<std::vector<Extracted>> every GUARDED_BY(mutex);  // nothing: not determined yet
    const std::byte* of GUARDED_BY(mutex) = nullptr;

    Status read(const ProgramBitcode& own) REQUIRES(mutex) {
        if (of == own.section.data()) return {};
        auto read = std::make_unique<Program>(own.program, own.section, false);
        ROVE_CHECK(read->read());
        program = std::move(read);
        every.reset();
        of = own.section.data();
        return {};
    }

    Result<Extracted> extract(const ProgramBitcode& own, std::string_view asked) REQUIRES(mutex) {
        ROVE_CHECK(read(own));
        ROVE_TRY(const std::string key, program->key_of(std::string(asked)));
        ROVE_TRY(Extracted alone, program->take({key}));
        if (!alone.facts.obstacle.empty() || alone.facts.statics.empty()) return alone;
        if (!every) {
            ROVE_TRY(every, extract_all());
        }
        const auto found = std::ranges::find_if(
            *every, [&](const Extracted& each) { return std::ranges::binary_search(each.keys, key); });
        if (found == every->end()) return fail(ErrorCode::internal, "{} is not among the program's functions", key);
        return *found;
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

Own& own_program() {
    // Never destroyed, because threads may be here when the process ends.
    static constinit MadeInEachProcess<Own> made;
    return made.get([] { return new Own; });
}

// Runs in another thread, for which this one holds the lock.
template <typename Work>
Status work_guarded(Own& own, const std::string& program, Work&& work) REQUIRES(own.mutex) {
    Status ended = run_guarded(program, std::forward<Work>(work));
    if (ended) return {};
    [[maybe_unused]] const Program* const lost = own.program.release();  // LLVM has given up in the middle of it
    own.of = nullptr;
    return ended;
}

// Reading a program takes as long as taking out ten functions.
constexpr std::size_t kFunctionsOfAThread = 25;

using Others = std::vector<std::future<Status>>;  // threads

// Takes every function that a program can send out of it. Functions known from the last time, and unchanged, are not taken again.
class Every {
public:
    // others: outlives this. If LLVM gives up, this object is never destroyed (guard.hpp), and the owner of `others` waits for them.
    Every(const ExtractRequest& request, Others& others)
        : request_(request),
          known_(request.known),
          others_(others),
          program_(request.from.program, request.from.section, true, request.is_strong) {}

    Result<std::vector<Extracted>> extract() {
        ROVE_CHECK(program_.read());
        if (known_ != nullptr) program_.definitions().recall(*known_);
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
            if (each.facts.obstacle.empty() && each.bitcode.empty() && !known_->has_package(each.facts.digest)) {
                ROVE_TRY(each, program_.take(each.keys));
            }
        if (std::ranges::any_of(all, [](const Extracted& each) { return !each.facts.statics.empty(); })) {
            Program as_written(request_.from.program, request_.from.section, false, request_.is_strong);
            ROVE_CHECK(as_written.read());
            ROVE_CHECK(as_written.compare_statics(all));
        }
        if (known_ != nullptr) program_.definitions().note(*known_);
        return all;
    }

private:
    // The result of the last time, if it is still valid.
    Result<std::optional<Extracted>> known_of(const std::vector<std::string>& keys) {
        if (known_ == nullptr) return std::nullopt;
        ROVE_TRY(const std::optional<Digest> fingerprint, program_.fingerprint(keys));
        const Facts* const facts = fingerprint ? known_->find(*fingerprint) : nullptr;
        if (facts == nullptr) return std::nullopt;
        known_->keep(*fingerprint, *facts);
        return Extracted{.facts = *facts, .keys = keys, .bitcode = {}, .entries = {}, .changed_at_home = {}};
    }
    Status keep(const Extracted& extracted) {
        if (known_ == nullptr) return {};
        ROVE_TRY(const std::optional<Digest> fingerprint, program_.fingerprint(extracted.keys));
        if (fingerprint) known_->keep(*fingerprint, extracted.facts);
        return {};
    }

    // Takes those at these places, into their places, on all cores. Each thread reads the program for itself, because LLVM's modules belong
    // to one thread.
    Status take_each(const std::vector<std::string>& keys, const std::vector<std::size_t>& places,
                     std::vector<Extracted>& alone) {
        const std::size_t threads =
            std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 1 + places.size() / kFunctionsOfAThread);
        // Takes every `threads`th one, from `first` on.
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
            ~Ends() { others.clear(); }  // waits for each, before the objects that they use are destroyed
        } at_last{others_};
        for (std::size_t i = 1; i < threads; ++i) try {
                others_.push_back(std::async(std::launch::async, [this, &take_part, i] {
                    return guarded(request_.from.program, [this, &take_part, i]() -> Status {
                        Program program(request_.from.program, request_.from.section, true, request_.is_strong);
                        ROVE_CHECK(program.read());
                        return take_part(program, i);
                    });
                }));
            } catch (const std::system_error&) {  // no thread is available: this one does it
                break;
            }
        ROVE_CHECK(take_part(program_, 0));
        for (std::size_t i = others_.size() + 1; i < threads; ++i) ROVE_CHECK(take_part(program_, i));
        for (std::future<Status>& each : others_) ROVE_CHECK(each.get());
        return {};
    }

    const ExtractRequest& request_;
    KnownFacts* const known_;
    Others& others_;
    Program program_;
};

}  // namespace

Result<std::vector<Extracted>> extract_all(const ExtractRequest& request) {
    Others others;  // these threads end before `request` is destroyed, also if LLVM gives up in this one
    return guarded(request.from.program,
                   [&]() -> Result<std::vector<Extracted>> { return Every(request, others).extract(); });
}

Status read_own(const ProgramBitcode& program) {
    Own& own = own_program();
    const MutexLock lock(own.mutex);
    Status read;
    ROVE_CHECK(work_guarded(own, program.program, [&]() REQUIRES(own.mutex) { read = own.read(program); }));
    return read;
}

Result<Extracted> extract_own(const ProgramBitcode& program, std::string_view key) {
    Own& own = own_program();
    const MutexLock lock(own.mutex);
    std::optional<Result<Extracted>> extracted;
    ROVE_CHECK(work_guarded(own, program.program,
                            [&]() REQUIRES(own.mutex) { extracted.emplace(own.extract(program, key)); }));
    return std::move(*extracted);
}

}  // namespace rove::bitcode
