// Wrong uses of the locks of base/mutex.hpp and of a node's that -Wthread-safety must report: clang's -verify wants these warnings exactly.
#include <algorithm>
#include <condition_variable>
#include <vector>

#include "base/mutex.hpp"
#include "lead/engine_lock.hpp"

namespace rove {

// ---- a mutex and what it guards
class Counter {
public:
    int next() {
        const MutexLock lock(mutex_);
        return next_locked();
    }
    int next_without() {
        return ++count_;  // expected-warning {{writing variable 'count_' requires holding mutex 'mutex_'}}
    }
    int step_without() {
        return next_locked();  // expected-warning {{calling function 'next_locked' requires holding mutex 'mutex_'}}
    }
    int in_between() {
        const MutexLock lock(mutex_);
        const Unlocked free(mutex_);
        return count_;  // expected-warning {{reading variable 'count_' requires holding mutex 'mutex_'}}
    }
    int again_after() {
        const MutexLock lock(mutex_);
        {
            const Unlocked free(mutex_);
        }
        return count_;
    }
    int wait() {
        const MutexLock lock(mutex_);
        while (count_ == 0) changed_.wait(mutex_);
        return count_;
    }
    int of_another(Counter& other) {
        const MutexLock lock(other.mutex_);
        return count_;  // expected-warning {{reading variable 'count_' requires holding mutex 'mutex_'}}
        // expected-note@-1 {{found near match 'other.mutex_'}}
    }

private:
    int next_locked() REQUIRES(mutex_) { return ++count_; }
    Mutex mutex_;
    std::condition_variable_any changed_;
    int count_ GUARDED_BY(mutex_) = 0;
};

// ---- a lock that guards members of several classes
class Table;
struct Part {
    int size() const REQUIRES(lock_of<Table>) { return bytes; }
    int bytes GUARDED_BY(lock_of<Table>) = 0;
};
class OtherTable;

class Table {
public:
    int size() {
        const LockOf lock(mutex_);
        int sum = 0;
        for (const Part& part : parts_) sum += part.size();
        return sum;
    }
    bool is_empty() {
        const LockOf lock(mutex_);
        return std::ranges::all_of(parts_, [](const Part& part) REQUIRES(lock_of<Table>) { return part.bytes == 0; });
    }
    int of(const Part& part) {
        return part.bytes;  // expected-warning {{reading variable 'bytes' requires holding mutex 'lock_of'}}
    }
    int of_freed(const Part& part) {
        const LockOf lock(mutex_);
        const Unlocked free(mutex_);
        return part.size();  // expected-warning {{calling function 'size' requires holding mutex 'lock_of'}}
    }
    int under(MutexOf<OtherTable>& other, const Part& part) {
        const LockOf lock(other);
        return part.bytes;  // expected-warning {{reading variable 'bytes' requires holding mutex 'lock_of'}}
    }
    int in_lambda(const Part& part) {
        const LockOf lock(mutex_);
        return [&] { return part.bytes; }();  // expected-warning {{reading variable 'bytes' requires holding mutex}}
    }
    int in_lambda_that_is_told(const Part& part) {
        const LockOf lock(mutex_);
        return [&]() REQUIRES(lock_of<Table>) { return part.bytes; }();
    }
    void clear() EXCLUDES(lock_of<Table>) {
        const LockOf lock(mutex_);
        parts_.clear();
    }
    void clear_twice() {
        const LockOf lock(mutex_);
        clear();  // expected-warning {{cannot call function 'clear' while mutex 'lock_of' is held}}
    }

private:
    MutexOf<Table> mutex_;
    std::vector<Part> parts_ GUARDED_BY(lock_of<Table>);
};

// ---- an engine's lock
class Node {
public:
    int next() {
        Hold hold(lock_);
        return next_locked(hold.lock());
    }
    int step_without() {
        return step();  // expected-warning {{calling function 'step' requires holding mutex 'lock_of'}}
    }
    int in_between(HeldLock& lock) REQUIRES(lock_of<EngineLock>) {
        lock.unlock();
        const int seen = steps_;  // expected-warning {{reading variable 'steps_' requires holding mutex 'lock_of'}}
        lock.lock();
        return seen;
    }
    int not_again(HeldLock& lock) REQUIRES(lock_of<EngineLock>) {
        const int made = step();
        lock.unlock();
        return made;
    }  // expected-warning {{expecting mutex 'lock_of' to be held at the end of function}}
    // expected-note@-5 {{mutex acquired here}}
    int taken_twice() {
        const Hold hold(lock_);
        const Hold again(lock_);  // expected-warning {{acquiring mutex 'lock_of' that is already held}}
        // expected-note@-2 {{mutex acquired here}}
        return steps_;
    }
    int while_released(HeldLock& lock) REQUIRES(lock_of<EngineLock>) {
        const Unlocked free(lock);
        return steps_;  // expected-warning {{reading variable 'steps_' requires holding mutex 'lock_of'}}
    }
    void let_in_under_it() {
        const Hold hold(lock_);
        lock_.let_in();  // expected-warning {{cannot call function 'let_in' while mutex 'lock_of' is held}}
    }
    int wait() {
        Hold hold(lock_);
        while (steps_ == 0) changed_.wait(hold.lock());
        return steps_;
    }
    int in_lambda_of_another() {
        const Hold hold(lock_);
        return called([this] {
            engine_lock_is_held();
            return steps_;
        });
    }

private:
    template <typename Work>
    static int called(const Work& work) {
        return work();
    }
    int step() REQUIRES(lock_of<EngineLock>) { return ++steps_; }
    int next_locked(HeldLock& lock) REQUIRES(lock_of<EngineLock>) {
        lock.unlock();
        lock.lock();
        return step();
    }
    EngineLock lock_;
    std::condition_variable_any changed_;
    int steps_ GUARDED_BY(lock_of<EngineLock>) = 0;
};

// ---- a lock that several threads may share
class Shared {
public:
    int read() {
        const SharedLock lock(mutex_);
        return value_;
    }
    void write(int value) {
        const SoleLock lock(mutex_);
        value_ = value;
    }
    void write_among_others(int value) {
        const SharedLock lock(mutex_);
        value_ = value;  // expected-warning {{writing variable 'value_' requires holding shared mutex}}
    }

private:
    SharedMutex mutex_;
    int value_ GUARDED_BY(mutex_) = 0;
};

}  // namespace rove
