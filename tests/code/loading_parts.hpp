// The fixture of tests of the parts that load images and compile bitcode, with all that these use. The workers find nothing to do, because a
// test does their work on its own thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "cache_parts.hpp"
#include "code/tiers.hpp"
#include "given_compiler.hpp"

namespace rove::code {

// The constructor of images that have one: the node's own function `construct`.
inline std::function<void()> constructor;
inline void construct(int /*argc*/, char** /*argv*/, char** /*envp*/) {
    constructor();
}

class LoadingTest : public KeepingTest {
protected:
    LoadingTest() {
        options_.compiler = [this]() -> Result<bitcode::Compiler*> { return &compiler_; };
        options_.on_ready = [this](const Digest& package) {
            const LockOf held(mutex_);  // it is free
            ready_.push_back(package);
        };
        constructor = [] {};
    }
    void TearDown() override {
        const LockOf lock(mutex_);
        workers_.stop(Clock::now() + kPatience);
    }

    // ---- packages with one entry
    [[nodiscard]] static Contents small(const std::string& name) { return {.name = name, .image = image_of(1)}; }
    [[nodiscard]] static Contents large(const std::string& name) {
        Contents contents = small(name);
        contents.image->block.resize(kQuickImageBytesMax + 1);
        return contents;
    }
    [[nodiscard]] static Contents with_constructor(const std::string& name) {
        Contents contents{.name = name, .imports = {"construct"}, .image = image_of(1, 1)};
        contents.image->init_array_offset = contents.image->relocations[0].offset;
        contents.image->init_array_count = 1;
        return contents;
    }
    [[nodiscard]] static Contents with_static(const std::string& name) {
        Contents contents = small(name);
        contents.image->data_bytes = 16;
        contents.image->symbols.push_back(
            {.kind = wire::Symbol::Kind::static_, .segment = wire::Segment::data, .index = 0, .offset = 8});
        return contents;
    }
    [[nodiscard]] static Contents malformed(const std::string& name) {
        return {.name = name, .image = image_of(1, 1)};  // with an import of none
    }
    static constexpr const char* kMalformed = "image: a relocation to import 0 of 0";
    [[nodiscard]] static Contents with_bitcode(Contents contents) {
        contents.bitcode = any_bytes(300);
        return contents;
    }
    // The package before any of its slices has arrived.
    [[nodiscard]] static std::shared_ptr<PackageStore> manifest_of(const PackageStore& whole) {
        return *PackageStore::from_manifest(whole.manifest_bytes());
    }
    static void add_slice(PackageStore& to, const PackageStore& whole, Forms form) {
        const std::size_t slice = *whole.slice_index(host_triple(), form);
        EXPECT_TRUE(to.add_slice(slice, *whole.stored_slice(slice)));
    }

    [[nodiscard]] static void* target_of(const PackageCode& package, std::size_t function = 0) {
        return reinterpret_cast<void*>(package.functions[function]->target.load());
    }
    void bring(const std::string& name, void* address) {
        NameMap<void*> names;
        names[name] = address;
        (void)symbols_.add_interface("shelves", names);
    }

    GivenCompiler compiler_;
    std::function<bool(Duty)> do_next_ = [](Duty) { return false; };  // what workers do, under the lock
    std::vector<Digest> ready_;
    Symbols symbols_{{{"construct", reinterpret_cast<void*>(&construct)}}};
    Workers workers_{{.lock = lock_,
                      .options = options_,
                      .evictor = evictor_,
                      .all = [] { return std::shared_ptr<void>(); },
                      .do_next = [this](Duty duty) { return do_next_(duty); }}};
    Constructors constructors_{lock_, options_.node, workers_};
    Lacking lacking_{options_.node, symbols_};
    Dependencies dependencies_;
    Compiles compiles_{{.lock = lock_,
                        .options = options_,
                        .symbols = symbols_,
                        .budgets = budgets_,
                        .evictor = evictor_,
                        .queue = compile_queue_,
                        .dependencies = dependencies_,
                        .lacking = lacking_,
                        .new_codes = new_codes_,
                        .workers = workers_,
                        .constructors = constructors_}};
    ImageLoads images_{{.lock = lock_,
                        .options = options_,
                        .symbols = symbols_,
                        .pool = pool_,
                        .budgets = budgets_,
                        .evictor = evictor_,
                        .dependencies = dependencies_,
                        .lacking = lacking_,
                        .new_codes = new_codes_,
                        .workers = workers_,
                        .constructors = constructors_,
                        .compiles = compiles_}};
    Tiers tiers_{options_, symbols_, images_, compiles_};
};

}  // namespace rove::code
