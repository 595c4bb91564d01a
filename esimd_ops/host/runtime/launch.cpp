// Runs a launch: which groups are alive, whose turn it is, and who waits at which barrier. Knows no memory.
#include "../include/esimd_host/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "memory.hpp"
#include "report.hpp"
#include "residency.hpp"
#include "schedule.hpp"
#include "work.hpp"

namespace esimd_host {

thread_local Item* current = nullptr;
thread_local bool interleaved = false;

namespace {

constexpr uint32_t kPart = 32;  // work-items that, met, know of each other what they did: a sub-group's
constexpr size_t kMostFibers = 16384;  // two mappings each, of some 65 thousand

size_t product(const size_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

void split(size_t linear, const size_t (&sizes)[3], size_t (&position)[3]) {
  for (int i = 2; i >= 0; --i) {
    position[i] = linear % sizes[i];
    linear /= sizes[i];
  }
}

void poison(char* data, size_t bytes) {
  for (size_t i = 0; i + 1 < bytes; i += 2) std::memcpy(data + i, &kPoison, 2);
}

void run_fiber() {
  Worker& worker = at_work();
  worker.fiber.entered();
  while (worker.late > 0) {
    --worker.late;
    worker.fiber.suspend();
  }
  const Launch& launch = *worker.group->launch;
  launch.body(launch.kernel);
  worker.state = Worker::State::done;
  worker.fiber.suspend(true);
}

// Hands out groups in the order of the schedule, to one thread or several.
class Groups {
 public:
  Groups(const Launch& launch, const Schedule& schedule, std::mt19937_64& random)
      : total_(product(launch.groups)), order_(schedule.groups) {
    if (order_ != Schedule::Order::random) return;
    shuffled_.resize(total_);
    for (size_t i = 0; i < total_; ++i) shuffled_[i] = uint32_t(i);
    std::shuffle(shuffled_.begin(), shuffled_.end(), random);
  }
  bool next(size_t& group) {
    const size_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
    if (turn >= total_) return false;
    group = order_ == Schedule::Order::ascending    ? turn
            : order_ == Schedule::Order::descending ? total_ - 1 - turn
                                                    : shuffled_[turn];
    return true;
  }
  size_t total() const { return total_; }

 private:
  size_t total_;
  Schedule::Order order_;
  std::vector<uint32_t> shuffled_;
  std::atomic<size_t> turn_{0};
};

// One thread's share of a launch.
class Scheduler {
 public:
  Scheduler(const Launch& launch, const Schedule& schedule, Groups& groups, bool checks)
      : launch_(launch), schedule_(schedule), groups_(groups), random_(schedule.seed), items_(product(launch.locals)) {
    const uint32_t most = schedule.card ? residency(launch) : schedule.resident;
    resident_ = most ? most : groups.total();
    resident_ = std::max<size_t>(1, std::min(resident_, kMostFibers / std::max<size_t>(1, items_)));
    alone_ = items_ == 1 && resident_ == 1;
    direct_ = alone_ && !checks;
    interleaves_ = !alone_ && (schedule.items == Schedule::Items::lockstep || schedule.preempt > 0);
  }

  void run() {
    if (direct_) return run_directly();
    size_t turn = 0;
    while (true) {
      admit();
      if (workers_.empty()) return;
      if (schedule_.items == Schedule::Items::random || schedule_.preempt > 0) turn = random_() % workers_.size();
      const size_t tried = workers_.size();
      size_t k = 0;
      while (k < tried && workers_[(turn + k) % tried]->state != Worker::State::ready) ++k;
      if (k == tried) return give_up();
      turn = (turn + k) % tried;
      Worker& worker = *workers_[turn];
      resume(worker);
      ++turn;
      if (worker.state == Worker::State::done) finish(worker, turn);
      if (turn >= workers_.size()) turn = 0;
    }
  }

  bool direct() const { return direct_; }

  // Local memory of at least this size; what the kernel had of it before is kept.
  void grow(Group& group, size_t bytes) {
    if (direct_) {
      slm_.resize(std::max(bytes, slm_.size()));
      group.slm = slm_.data();
    } else {
      auto grown = std::make_unique_for_overwrite<char[]>(bytes);
      if (group.slm) std::memcpy(grown.get(), group.slm, group.slm_bytes);
      poison(grown.get() + group.slm_bytes, bytes - group.slm_bytes);
      static_cast<WorkGroup&>(group).slm_memory = std::move(grown);
      group.slm = static_cast<WorkGroup&>(group).slm_memory.get();
    }
    group.slm_bytes = bytes;
  }

  void yield() {
    if (schedule_.items != Schedule::Items::lockstep &&
        double(random_() >> 11) * 0x1p-53 >= schedule_.preempt) return;
    at_work().fiber.suspend();
  }

  // Whoever waits for another's atomic update must let it run, under schedules that switch nowhere else, too.
  void spin() {
    constexpr uint32_t kMany = 4096;
    if (direct_ || ++at_work().atomics < kMany) return;
    at_work().atomics = 0;
    at_work().fiber.suspend();
  }

  // Until all work-items in [first, last) are here, or have ended.
  void wait(uint32_t first, uint32_t last, const void* where, bool whole_group, size_t site = 0) {
    Worker& worker = at_work();
    WorkGroup& group = group_at_work();
    worker.first = first, worker.last = last, worker.where = where;
    worker.state = Worker::State::waiting;
    if (whole_group) {
      ++group.arrived;
      if (group.arrived == 1) group.arrived_at = where, group.arrived_site = site;
      if (site != group.arrived_site) {
        report({"barrier-mismatch", "barrier", "work-items of a group wait in different places",
                {where, group.linear, worker.index, "waits"}, {group.arrived_at, group.linear, 0, "waits"}, false});
      }
    }
    release(group, first, last, whole_group);
    worker.fiber.suspend();
  }

  void release(WorkGroup& group, uint32_t first, uint32_t last, bool whole_group) {
    if (whole_group && group.arrived + group.done < group.workers.size()) return;
    for (uint32_t i = first; i < last; ++i) {
      const Worker* other = group.workers[i];
      if (!other) continue;
      if (other->state != Worker::State::waiting || other->first != first || other->last != last) return;
    }
    for (uint32_t i = first; i < last; ++i) {
      if (group.workers[i]) group.workers[i]->state = Worker::State::ready;
    }
    if (checking && (whole_group || last - first <= kPart)) meeting_order(group, first, last);
    if (whole_group) {
      if (group.done > 0) {
        report({"divergent-barrier", "barrier",
                std::to_string(group.done) + " of " + std::to_string(group.workers.size()) + " work-items had ended",
                {group.arrived_at, group.linear, 0, "waits"}, {}, false});
      }
      group.arrived = 0;
      ++group.epoch;
    }
  }

 private:
  void run_directly() {
    WorkGroup group;
    Item item;
    group.launch = &launch_;
    std::vector<char> local(launch_.local_bytes);
    for (size_t linear; groups_.next(linear);) {
      group.linear = uint32_t(linear);
      split(linear, launch_.groups, group.id);
      group.local = local.data();
      group.slm = nullptr, group.slm_bytes = 0;
      item = Item{&group, 0, {}};
      current = &item;
      launch_.body(launch_.kernel);
    }
    current = nullptr;
  }

  void admit() {
    size_t linear;
    while (alive_ < resident_ && groups_.next(linear)) {
      if (spare_.empty()) spare_.push_back(made_.emplace_back(std::make_unique<WorkGroup>()).get());
      WorkGroup* group = spare_.back();
      spare_.pop_back();
      group->launch = &launch_;
      group->linear = uint32_t(linear);
      split(linear, launch_.groups, group->id);
      group->done = group->arrived = 0, group->epoch = 1;
      group->named.clear(), group->views.clear();
      group->slm = nullptr, group->slm_bytes = 0;
      group->local_memory = launch_.local_bytes ? std::make_unique_for_overwrite<char[]>(launch_.local_bytes) : nullptr;
      group->local = group->local_memory.get();
      poison(group->local, launch_.local_bytes);
      if (group->local_shadow.cells.size() < launch_.local_bytes) group->local_shadow.cells.resize(launch_.local_bytes);
      group->workers.clear();
      ++alive_;
      const size_t late = groups_.total() > 1 ? schedule_.stagger * linear / (groups_.total() - 1) : 0;
      for (size_t i = 0; i < items_; ++i) {
        Worker* worker = workers_.emplace_back(std::make_unique<Worker>(run_fiber)).get();
        worker->group = group;
        worker->index = uint32_t(i);
        worker->late = uint32_t(late);
        split(i, launch_.locals, worker->local);
        group->workers.push_back(worker);
      }
    }
  }

  void resume(Worker& worker) {
    current = &worker;
    interleaved = interleaves_;
    worker.fiber.resume();
    interleaved = false;
    current = nullptr;
  }

  void finish(Worker& worker, size_t& turn) {
    auto& group = static_cast<WorkGroup&>(*worker.group);
    ++group.done;
    group.workers[worker.index] = nullptr;
    workers_.erase(workers_.begin() + long(--turn));
    if (group.done < group.workers.size()) {
      if (group.arrived) release(group, 0, uint32_t(group.workers.size()), true);
      return;
    }
    group.slm_memory.reset();
    group.local_memory.reset();
    group.own.clear();
    --alive_;
    spare_.push_back(&group);
  }

  // All wait, for others that will not come. Their stacks are left as they are.
  void give_up() {
    for (const std::unique_ptr<Worker>& worker : workers_) {
      report({"deadlock", worker->state == Worker::State::named ? "named barrier" : "barrier",
              std::to_string(workers_.size()) + " work-items wait for ever",
              {worker->where, worker->group->linear, worker->index, "waits"}, {}, false});
    }
    while (!workers_.empty()) {
      workers_.back()->state = Worker::State::done;
      size_t turn = workers_.size();
      static_cast<WorkGroup&>(*workers_.back()->group).arrived = 0;
      finish(*workers_.back(), turn);
    }
  }

  const Launch& launch_;
  const Schedule& schedule_;
  Groups& groups_;
  std::mt19937_64 random_;
  size_t items_, resident_ = 1, alive_ = 0;
  bool alone_ = false, direct_ = false, interleaves_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<WorkGroup>> made_;
  std::vector<WorkGroup*> spare_;
  std::vector<char> slm_;  // of a kernel that is run directly, for all its groups
};

thread_local Scheduler* scheduler = nullptr;

void run_share(const Launch& launch, const Schedule& schedule, Groups& groups, bool checks) {
  Scheduler mine(launch, schedule, groups, checks);
  scheduler = &mine;
  mine.run();
  scheduler = nullptr;
}

}  // namespace

bool checking = false;

void launch(const Launch& launch) {
  const Schedule& schedule = esimd_host::schedule();
  std::mt19937_64 random(schedule.seed);
  Groups groups(launch, schedule, random);
  launched(launch);
  if (checking) memory().launch(), forget_order();
  constexpr size_t kEach = 16;  // groups that are worth starting a thread
  const size_t others = checking ? 0 : std::min<size_t>(schedule.threads - 1, groups.total() / kEach);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < others; ++i) threads.emplace_back([&] { run_share(launch, schedule, groups, false); });
  run_share(launch, schedule, groups, checking);
  for (std::thread& thread : threads) thread.join();
}

void yield() { scheduler->yield(); }
void spin() { scheduler->spin(); }

__attribute__((noinline)) void barrier(size_t site) {
  const void* where = __builtin_return_address(0);
  if (scheduler->direct()) return;
  scheduler->wait(0, uint32_t(group_at_work().workers.size()), where, true, site);
}

__attribute__((noinline)) void sub_group_barrier(uint32_t size) {
  const void* where = __builtin_return_address(0);
  if (scheduler->direct()) return;
  const uint32_t first = current->index / size * size;
  const uint32_t last = std::min(first + size, uint32_t(group_at_work().workers.size()));
  scheduler->wait(first, last, where, false);
}

void* exchange(const void* value, size_t bytes, uint32_t first, uint32_t last) {
  constexpr size_t kSlot = 16;
  if (scheduler->direct()) {
    static thread_local char slot[kSlot];
    std::memcpy(slot, value, bytes);
    return slot;
  }
  WorkGroup& group = group_at_work();
  std::vector<char>& slots = group.slots[at_work().exchanges++ % 2];
  if (slots.size() < group.workers.size() * kSlot) slots.resize(group.workers.size() * kSlot);
  std::memcpy(slots.data() + current->index * kSlot, value, bytes);
  scheduler->wait(first, last, __builtin_return_address(0), false);
  return slots.data() + first * kSlot;
}

void slm_init(size_t bytes) {
  Group& group = *current->group;
  if (bytes <= group.slm_bytes) return;
  uses_local(*group.launch, bytes);
  scheduler->grow(group, bytes);
}

void* group_memory(size_t site, size_t bytes) {
  WorkGroup& group = group_at_work();
  OwnMemory& own = group.own[site];
  if (own.bytes < bytes) {
    own.memory = std::make_unique_for_overwrite<char[]>(own.bytes = bytes);
    poison(own.memory.get(), bytes);
    own.shadow.cells.assign(checking ? bytes : 0, {});
    size_t all = group.slm_bytes;
    for (const auto& [place, one] : group.own) all += one.bytes;
    uses_local(*group.launch, all);
  }
  return own.memory.get();
}

void named_barrier_allocate(uint32_t count) {
  if (scheduler->direct()) return;
  for (uint32_t id = 0; id < count; ++id) group_at_work().named.try_emplace(id);
}

void named_barrier_signal(uint32_t id, bool producer, bool consumer, uint32_t producers, uint32_t consumers) {
  if (scheduler->direct()) return;
  WorkGroup& group = group_at_work();
  NamedBarrier& named = group.named[id];
  at_work().rounds[id] = named.round;
  named.producers += producer;
  named.consumers += consumer;
  if (named.producers < producers || named.consumers < consumers) return;
  named = {0, 0, named.round + 1};
  ++group.epoch;  // as if it ordered the whole group: too lenient rather than too strict
  for (Worker* worker : group.workers) {
    if (worker && worker->state == Worker::State::named && worker->named == id) worker->state = Worker::State::ready;
  }
}

__attribute__((noinline)) void named_barrier_wait(uint32_t id) {
  if (scheduler->direct()) return;
  Worker& worker = at_work();
  if (group_at_work().named[id].round != worker.rounds[id]) return;
  worker.where = __builtin_return_address(0);
  worker.named = id;
  worker.state = Worker::State::named;
  worker.fiber.suspend();
}

void slm_fault(size_t offset, size_t bytes) {
  std::fprintf(stderr, "esimd host: kernel %s: shared local memory at offset %zu, %zu bytes, of %zu. A build with "
               "--checks names the line.\n", current->group->launch->name, offset, bytes, current->group->slm_bytes);
  std::abort();
}

}  // namespace esimd_host
