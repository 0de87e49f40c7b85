#include "program/callables.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/demangle.hpp"
#include "base/fork.hpp"
#include "base/loaded_file.hpp"
#include "base/log.hpp"
#include "base/made_once.hpp"
#include "base/mangled.hpp"
#include "base/transient.hpp"
#include "code/own_code.hpp"
#include "package/bundle.hpp"
#include "package/digest.hpp"
#include "program/residents.hpp"
#include "rove/rove.hpp"

namespace rove::detail {
namespace {

// The type's name, mostly as a source would spell it.
std::string readable(const std::type_info& type) {
    std::string text = demangled(type.name());
    const auto replace = [&text](std::string_view what, std::string_view with) {
        for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
            text.replace(at, what.size(), with);
    };
    replace("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string");
    replace("std::basic_string_view<char, std::char_traits<char> >", "std::string_view");
    replace(", 18446744073709551615ul>", ">");  // std::dynamic_extent
    for (std::size_t at = text.find(", std::allocator<"); at != std::string::npos;
         at = text.find(", std::allocator<")) {
        std::size_t end = at + 17;
        for (int depth = 1; end < text.size() && depth > 0; ++end)
            depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
        text.erase(at, end - at);
    }
    replace(" >", ">");
    return text;
}

std::string signature_of_types(const FunctionFacts& facts) {
    std::string text = readable(*facts.types[0].type) + " (";
    for (std::size_t i = 1; i < facts.type_count; ++i) text += (i > 1 ? ", " : "") + readable(*facts.types[i].type);
    return text + ")";
}

struct Callables {
    Mutex mutex;
    std::map<std::string, std::string> builds
        GUARDED_BY(mutex);  // builds of files without a build id, by path, inode and time
    std::unordered_map<code::EntryPoint, const Callable*> by_code GUARDED_BY(mutex);
    std::unordered_map<std::string, const Resident*> by_entry GUARDED_BY(mutex);
};
Callables& callables() {
    static constinit MadeOnce<Callables> kept;
    return kept.get([] {
        auto* made = new Callables;
        hold_across_forks(made->mutex);
        return made;
    });
}

// The identity of the program or library that holds an address: its build id, or else all of its bytes, which are read once.
std::string build_of(const void* address) {
    const LoadedFile of = loaded_file_of(address);
    if (!of.build_id.empty() || of.path.empty()) return of.build_id;
    struct stat now{};  // the path may name another file by now
    (void)stat(of.path.c_str(), &now);
    Callables& all = callables();
    const MutexLock lock(all.mutex);
    std::string& build =
        all.builds[fmt::format("{} {} {}.{}", of.path, now.st_ino, now.st_mtim.tv_sec, now.st_mtim.tv_nsec)];
    if (!build.empty()) return build;
    std::ifstream file(of.path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return build = digest_of_manifest(as_bytes(bytes)).hex();
}

std::string why_not_in_bundle() {
    const Bundle& bundle = Bundle::of_program();
    if (!bundle.why_unreadable().empty())
        return fmt::format("the packages of this program cannot be read: {}; link it again, with the Rove that it uses",
                           bundle.why_unreadable());
    if (bundle.empty())
        return "its program carries no code that could travel; build it with clang and rove_add_executable(), without "
               "SHIP nothing";
    return fmt::format("the packages of this program do not have it: {}", Bundle::kNotAmongThem);
}

}  // namespace

Result<const Callable::Code*> code_of(const Callable& callable) try {
    return &callable.code.get([&callable] {
        const Bundle::Found found = Bundle::of_program().find(callable.key);
        Callable::Code code{.shipped = {}, .package = found.package, .why_not = found.why_not};
        if (!code.package && code.why_not.empty() && !code::has_own_bitcode()) code.why_not = why_not_in_bundle();
        if (!code.package && code.why_not.empty()) {
            Result<std::shared_ptr<PackageStore>> taken = code::package_of_own(callable.key);
            if (!taken && is_transient(taken.error())) throw_error(taken.error());
            if (taken)
                code.package = std::move(*taken);
            else
                code.why_not = taken.error().message();
        }
        if (code.package) {
            if (const auto place = Bundle::place_in(*code.package, callable.key))
                code.shipped = code.package->function_ids()[*place];
            else
                code = {.shipped = {},
                        .package = {},
                        .why_not = "its package has no entry for it; build the program again"};
        }
        return new Callable::Code(std::move(code));
    });
} catch (const Error& error) {
    return fail(error.code(), "{} cannot be sent: {}", callable.name, error.message());
}

const Callable& add_callable(const FunctionFacts& facts) {
    auto* callable = new Callable;  // never destroyed: it lives as long as the program
    const char* function = facts.function->name();
    const bool lambda = facts.name == nullptr && names_a_lambda(function);
    const bool in_file = lambda || names_internal(function);
    callable->name = facts.name != nullptr ? facts.name : Bundle::name_of(demangled(facts.function->name()));
    callable->key = Bundle::key_of(facts.tag->name(), facts.source);
    std::string types;
    for (std::size_t i = 0; i < facts.type_count; ++i) {
        types += std::string(facts.types[i].type->name()) + ' ';
        callable->schema =
            mix(mix(mix(callable->schema, facts.types[i].bytes), facts.types[i].alignment), facts.types[i].schema);
    }
    callable->resident =
        facts.name != nullptr
            ? resident_id({"named", facts.name, types})
            : resident_id({facts.tag->name(), types, in_file ? Bundle::file_of(facts.source) : "",
                           lambda ? build_of(reinterpret_cast<const void*>(facts.code)) : std::string()});
    const Resident& resident = Residents::add({.id = callable->resident,
                                               .name = callable->name,
                                               .signature = signature_of_types(facts),
                                               .schema = callable->schema,
                                               .entry = facts.code});
    Callables& all = callables();
    const MutexLock lock(all.mutex);
    all.by_code[facts.code] = callable;
    // Packages name it by one or the other. If two functions share the second name, packages use only the first.
    all.by_entry[Bundle::entry_of(callable->key)] = &resident;
    all.by_entry[Bundle::entry_of(Bundle::without_file(callable->key))] = &resident;
    return *callable;
}

const Callable* callable_of(code::EntryPoint code) {
    Callables& all = callables();
    const MutexLock lock(all.mutex);
    const auto found = all.by_code.find(code);
    return found != all.by_code.end() ? found->second : nullptr;
}

const Resident* resident_of_entry(std::string_view entry) {
    Callables& all = callables();
    const MutexLock lock(all.mutex);
    const auto found = all.by_entry.find(std::string(Bundle::without_name(entry)));
    return found != all.by_entry.end() ? found->second : nullptr;
}

void read_own_code() {
    if (!Residents::none()) (void)Bundle::of_program();
}

std::uint32_t forms_of_one(const PackageStore& package) {
    if (package.function_ids().size() != 1) return 0;
    std::string forms;
    for (const wire::Slice& slice : package.manifest().slices)
        forms += slice.triple + ' ' + std::to_string(static_cast<int>(slice.form)) + ' ';
    std::uint32_t number = 0;
    std::memcpy(&number, digest_of_manifest(as_bytes(forms)).raw().data(), sizeof number);
    return std::max(number, 1U);
}

void say_if_other_code(const Resident& own, const wire::Either& callers, const std::string& node) {
    struct Said {
        Mutex mutex;
        std::set<FunctionId> functions GUARDED_BY(mutex);
    };
    static constinit MadeOnce<Said> kept;
    const Callable* const callable = callable_of(own.entry);
    if (callable == nullptr || callers.forms == 0) return;
    const Bundle::Found here = Bundle::of_program().find(callable->key);
    if (!here.package || forms_of_one(*here.package) != callers.forms) return;  // the two cannot be compared
    if (here.package->function_ids().front() == callers.shipped) return;
    Said& said = kept.get([] {
        auto* made = new Said;
        hold_across_forks(made->mutex);
        return made;
    });
    {
        const MutexLock lock(said.mutex);
        if (!said.functions.insert(own.id).second) return;
    }
    log().warn("{}: runs its own {}, whose code is not the caller's; rove::exactly({}) would run that", node, own.name,
               own.name);
}

}  // namespace rove::detail
