#include "order.hpp"

#include <algorithm>
#include <initializer_list>
#include <unordered_map>

#include "work.hpp"

namespace esimd_host {

namespace {

struct Place {
  Both told_all;
  std::map<uint32_t, Both> told_group;
};

std::unordered_map<const void*, Place>& places() {
  static auto& all = *new std::unordered_map<const void*, Place>;
  return all;
}

Stamp now(const Worker& worker) {
  return {worker.group->linear, worker.index, static_cast<const WorkGroup*>(worker.group)->epoch, worker.tick, false, 0};
}

}  // namespace

bool Knowledge::covers(Stamp stamp) const {
  const auto group = groups_.find(stamp.group());
  if (group == groups_.end()) return false;
  if (stamp.epoch() < group->second.epoch) return true;
  const auto item = group->second.ticks.find(stamp.item());
  return item != group->second.ticks.end() && stamp.tick() <= item->second;
}

void Knowledge::learn(const Stamp& now) {
  Of& group = groups_[now.group()];
  group.epoch = std::max(group.epoch, now.epoch());
  uint32_t& tick = group.ticks[now.item()];
  tick = std::max(tick, now.tick());
}

void Knowledge::join(const Knowledge& other) {
  if (this == &other) return;
  for (const auto& [number, of] : other.groups_) {
    Of& group = groups_[number];
    group.epoch = std::max(group.epoch, of.epoch);
    for (const auto& [item, tick] : of.ticks) group.ticks[item] = std::max(group.ticks[item], tick);
  }
}

void forget_order() { places().clear(); }

void order(bool wide, bool global) {
  if (!current || !checking) return;
  Worker& worker = at_work();
  const int kind = global ? 0 : 1;
  Knowledge told = worker.views.seen.of[kind];
  told.join(group_at_work().views.seen.of[kind]);
  told.learn(now(worker));
  worker.views.told_group.of[kind].join(told);
  if (wide) worker.views.told_all.of[kind].join(told);
  ++worker.tick;
}

void atomic_order(const void* address, bool reads_only, bool local) {
  Worker& worker = at_work();
  const WorkGroup& group = group_at_work();
  const bool tells = !reads_only && !(worker.views.told_group.empty() && group.views.told_group.empty());
  if (!tells && places().empty()) return;
  Place& place = places()[address];
  worker.views.seen.join(place.told_group[group.linear]);
  if (!local) worker.views.seen.join(place.told_all);
  if (!tells) return;
  for (const Views* views : std::initializer_list<const Views*>{&worker.views, &group.views}) {
    place.told_group[group.linear].join(views->told_group);
    if (!local) place.told_all.join(views->told_all);
  }
}

void meeting_order(WorkGroup& group, uint32_t first, uint32_t last) {
  const bool whole = first == 0 && last == group.workers.size();
  Views met;
  for (uint32_t i = first; i < last; ++i) {
    Worker* worker = group.workers[i];
    if (!worker) continue;
    met.join(worker->views);
    if (whole) {
      worker->views.clear();
    } else {
      for (Knowledge& seen : met.seen.of) seen.learn(now(*worker));
      ++worker->tick;
    }
  }
  if (whole) {
    group.views.join(met);
    return;
  }
  for (uint32_t i = first; i < last; ++i) {
    if (group.workers[i]) group.workers[i]->views.join(met);
  }
}

bool known(Stamp stamp, bool local) {
  const int kind = local ? 1 : 0;
  return at_work().views.seen.of[kind].covers(stamp) || group_at_work().views.seen.of[kind].covers(stamp);
}

}  // namespace esimd_host
