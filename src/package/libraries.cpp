#include "package/libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/fork.hpp"
#include "base/made_once.hpp"

namespace rove {
namespace {

// A library of this process, by the name by which it was opened; null: there is none.
void* opened(const std::string& name) {
    void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);  // it was open before, and stays open
    return handle;
}

// Whether the library itself defines the name, because dlsym() also searches the libraries that it needs.
bool defines(void* library, const std::string& name) {
    void* const address = dlsym(library, name.c_str());
    Dl_info found{};
    link_map *wanted = nullptr, *has = nullptr;
    return address != nullptr && dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&wanted)) == 0 &&
           dladdr1(address, &found, reinterpret_cast<void**>(&has), RTLD_DL_LINKMAP) != 0 && wanted == has;
}

std::string_view file_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);  // the whole path if there is no '/'
}

// The libraries of this process that every node has, and the list of those that its program needs.
struct OfThisProcess {
    std::vector<void*> of_every_node;
    std::vector<std::string> needed;
};

const OfThisProcess& of_this_process() {
    static constinit MadeOnce<const OfThisProcess> kept;
    return kept.get([] {
        auto* const found = new OfThisProcess;
        const NoForkMeanwhile whole;  // the loader has a lock
        std::vector<std::string> paths;
        dl_iterate_phdr(
            [](dl_phdr_info* module, std::size_t, void* into) {
                if (module->dlpi_name != nullptr && is_on_every_node(file_name(module->dlpi_name)))
                    static_cast<std::vector<std::string>*>(into)->emplace_back(module->dlpi_name);
                return 0;
            },
            &paths);
        for (const std::string& path : paths)
            if (void* library = opened(path); library != nullptr) found->of_every_node.push_back(library);
        void* const program = dlopen(nullptr, RTLD_LAZY);
        link_map* map = nullptr;
        if (program == nullptr || dlinfo(program, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return found;
        const char* strings = nullptr;
        for (const ElfW(Dyn)* each = map->l_ld; each->d_tag != DT_NULL; ++each)
            if (each->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(each->d_un.d_ptr);
        for (const ElfW(Dyn)* each = map->l_ld; strings != nullptr && each->d_tag != DT_NULL; ++each)
            if (each->d_tag == DT_NEEDED) found->needed.emplace_back(strings + each->d_un.d_val);
        return found;
    });
}

// The addresses of the libraries that Rove itself uses. They are loaded with it, and stay loaded.
struct Range {
    std::uintptr_t begin, end;
};
const std::vector<Range>& of_rove_alone() {
    static constinit MadeOnce<const std::vector<Range>> kept;
    return kept.get([] {
        auto* const found = new std::vector<Range>;
        const NoForkMeanwhile whole;  // the loader has a lock
        dl_iterate_phdr(
            [](dl_phdr_info* module, std::size_t, void* into) {
                static constexpr std::string_view kNames[] = {"libzstd.so", "libsodium.so", "libfmt.so",
                                                              "libspdlog.so"};
                const std::string_view file = file_name(module->dlpi_name != nullptr ? module->dlpi_name : "");
                if (std::ranges::none_of(kNames, [&](std::string_view name) { return file.starts_with(name); }))
                    return 0;
                for (const ElfW(Phdr) & each : std::span(module->dlpi_phdr, module->dlpi_phnum))
                    if (each.p_type == PT_LOAD)
                        static_cast<std::vector<Range>*>(into)->push_back(
                            {module->dlpi_addr + each.p_vaddr, module->dlpi_addr + each.p_vaddr + each.p_memsz});
                return 0;
            },
            found);
        return found;
    });
}

}  // namespace

bool is_of_rove_alone(const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return std::ranges::any_of(of_rove_alone(), [at](const Range& each) { return at >= each.begin && at < each.end; });
}

bool is_on_every_node(std::string_view soname) {
    // The libraries of C and C++, and those of sanitizers, because functions travel without the checks.
    static constexpr std::string_view names[] = {"libc.so",  "libm.so",  "libstdc++.so",  "libgcc_s.so", "ld-linux",
                                                 "libdl.so", "librt.so", "libpthread.so", "librove.so",  "libasan",
                                                 "libtsan",  "libubsan", "libclang_rt"};
    return std::any_of(std::begin(names), std::end(names),
                       [&](std::string_view name) { return soname.starts_with(name); });
}

bool every_node_has(const std::string& name) {
    const std::vector<void*>& libraries = of_this_process().of_every_node;
    return std::any_of(libraries.begin(), libraries.end(), [&](void* library) { return defines(library, name); });
}

bool is_function_of_c(const std::string& name) {
    for (const char* const soname : {"libc.so.6", "libm.so.6"}) {
        void* const library = opened(soname);
        if (library == nullptr || !defines(library, name)) continue;
        Dl_info found{};
        const ElfW(Sym)* symbol = nullptr;
        if (dladdr1(dlsym(library, name.c_str()), &found, const_cast<void**>(reinterpret_cast<const void**>(&symbol)),
                    RTLD_DL_SYMENT) == 0)
            continue;
        // The code of a function that is chosen by the CPU has no symbol.
        return symbol == nullptr || ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
    }
    return false;
}

Libraries::Libraries(std::vector<std::string> needed, Defines defines_name)
    : sonames_(std::move(needed)), defines_(std::move(defines_name)) {
    // Libraries named by a path are left out: other machines need not have that path, and nodes refuse it.
    std::erase_if(sonames_, [](const std::string& soname) {
        return is_on_every_node(soname) || soname.find('/') != std::string::npos;
    });
    std::sort(sonames_.begin(), sonames_.end());
}

Libraries Libraries::of_this_program() {
    return {of_this_process().needed, [](const std::string& soname, const std::string& name) {
                void* const library = opened(soname);
                return library != nullptr && defines(library, name);
            }};
}

std::string Libraries::with(const std::string& name) const {
    if (every_node_has(name)) return {};
    const auto found = std::find_if(sonames_.begin(), sonames_.end(),
                                    [&](const std::string& soname) { return defines_(soname, name); });
    return found != sonames_.end() ? *found : std::string();
}

std::vector<std::string> Libraries::with(const std::vector<std::string>& names) const {
    std::set<std::string> sonames;
    for (const std::string& name : names)
        if (std::string soname = with(name); !soname.empty()) sonames.insert(std::move(soname));
    return {sonames.begin(), sonames.end()};
}

std::string Libraries::lines() const {
    std::string lines;
    for (const std::string& soname : sonames_) lines += soname + '\n';
    return lines;
}

}  // namespace rove
