// LSC messages of two dimensions: a block of a surface, whose width, height and pitch are given less one, in bytes and
// rows. What lies outside the surface reads as zero and is not written. What the hardware asks of a surface is checked.
#pragma once
#include "common.hpp"

namespace sycl::ext::intel::experimental::esimd {

template <class T, int Width, int Height, int Blocks>
class config_2d_mem_access {
 public:
  config_2d_mem_access() = default;
  config_2d_mem_access(const T* p, uint32_t surface_width, uint32_t surface_height, uint32_t surface_pitch, int32_t x, int32_t y)
      : data_(const_cast<T*>(p)), width_(surface_width), height_(surface_height), pitch_(surface_pitch), x_(x), y_(y) {}

  T* get_data_pointer() const { return data_; }
  uint32_t get_surface_width() const { return width_; }
  uint32_t get_surface_height() const { return height_; }
  uint32_t get_surface_pitch() const { return pitch_; }
  int32_t get_x() const { return x_; }
  int32_t get_y() const { return y_; }
  config_2d_mem_access& set_data_pointer(const T* p) { return data_ = const_cast<T*>(p), *this; }
  config_2d_mem_access& set_surface_width(uint32_t value) { return width_ = value, *this; }
  config_2d_mem_access& set_surface_height(uint32_t value) { return height_ = value, *this; }
  config_2d_mem_access& set_surface_pitch(uint32_t value) { return pitch_ = value, *this; }
  config_2d_mem_access& set_x(int32_t value) { return x_ = value, *this; }
  config_2d_mem_access& set_y(int32_t value) { return y_ = value, *this; }

 private:
  T* data_ = nullptr;
  uint32_t width_ = 0, height_ = 0, pitch_ = 0;
  int32_t x_ = 0, y_ = 0;
};

namespace detail {

using namespace sycl::ext::intel::esimd::detail;

// How a block lies in a register: row by row; transposed, column by column; transformed, with as many consecutive rows of
// one column as fit into 32 bits side by side.
template <class T, int Width, int Height, int Blocks, bool Transposed, bool Transformed>
struct Tile {
  static_assert(!Transposed || !Transformed, "lsc_load_2d: transposed and transformed exclude each other");
  static_assert(!Transposed || (Blocks == 1 && sizeof(T) >= 4), "lsc_load_2d: transposed is one block of 4 or 8 bytes");
  static_assert(!Transformed || sizeof(T) <= 2, "lsc_load_2d: transformed is for elements of 1 or 2 bytes");
  static_assert(Width * sizeof(T) % 4 == 0, "lsc_load_2d: a row of a block is a multiple of 4 bytes");
  static_assert(Width * Blocks * sizeof(T) <= 64, "lsc_load_2d: the rows of all blocks take up to 64 bytes");
  static_assert(Height <= 32, "lsc_load_2d: up to 32 rows");

  static constexpr int per_word = sizeof(T) >= 4 ? 1 : 4 / int(sizeof(T));
  static constexpr int rows = Transformed ? roundUpNextMultiple<Height, per_word>() : Height;
  static constexpr int columns = Transformed ? getNextPowerOf2<Width>() : Width;
  static constexpr int elements = rows * columns;
  static constexpr int length = elements * Blocks;

  static constexpr int place(int block, int row, int column) {
    const int in_block = Transposed    ? column * Height + row
                         : Transformed ? row / per_word * columns * per_word + column * per_word + row % per_word
                                       : row * Width + column;
    return block * elements + in_block;
  }
};

template <class T>
ESIMD_HOST_MEMORY inline void check_surface([[maybe_unused]] const T* data, [[maybe_unused]] uint32_t width,
                                            [[maybe_unused]] uint32_t height, [[maybe_unused]] uint32_t pitch,
                                            [[maybe_unused]] int x) {
#ifdef ESIMD_HOST_CHECKS
  if (reinterpret_cast<uintptr_t>(data) % 64 != 0) esimd_host::check_surface("the base is not aligned to 64 bytes");
  if (pitch + 1 < 64 || (pitch + 1) % 16 != 0) esimd_host::check_surface("the pitch is not a multiple of 16 from 64 bytes up");
  if (width + 1 < 64 || (width + 1) % 4 != 0) esimd_host::check_surface("the width is not a multiple of 4 from 64 bytes up");
  if (width > pitch) esimd_host::check_surface("the width is larger than the pitch");
  if (width >= 1u << 24 || height >= 1u << 24) esimd_host::check_surface("the surface is larger than 2^24");
  if (x * int(sizeof(T)) % 4 != 0) esimd_host::check_surface("x is not a multiple of 4 bytes");
#endif
}

// Calls `row(pointer, first column, end, block, y)` for what of each row lies on the surface.
template <class T, int Width, int Height, int Blocks, class Row>
ESIMD_HOST_MEMORY inline void each_row(const T* data, uint32_t width, uint32_t height, uint32_t pitch, int x, int y, Row row) {
  for (int block = 0; block < Blocks; ++block) {
    for (int r = 0; r < Height; ++r) {
      const int64_t at = int64_t(y) + r, left = int64_t(x) + block * Width;
      if (at < 0 || at > int64_t(height)) continue;
      const int64_t columns = (int64_t(width) + 1) / int64_t(sizeof(T));
      const int64_t first = left < 0 ? -left : 0, end = columns - left < Width ? columns - left : Width;
      if (first >= end) continue;
      const auto* start = reinterpret_cast<const T*>(reinterpret_cast<const char*>(data) + at * (int64_t(pitch) + 1)) + left;
      row(start, int(first), int(end), block, r);
    }
  }
}

}  // namespace detail

namespace detail {
template <class T, int Blocks, int Height, int Width, bool Transposed, bool Transformed>
constexpr int get_lsc_block_2d_data_size() { return Tile<T, Width, Height, Blocks, Transposed, Transformed>::length; }
}  // namespace detail

template <class T, int Width, int Height = 1, int Blocks = 1, bool Transposed = false, bool Transformed = false,
          cache_hint = cache_hint::none, cache_hint = cache_hint::none,
          int N = detail::Tile<T, Width, Height, Blocks, Transposed, Transformed>::length>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_load_2d(const T* p, uint32_t width, uint32_t height, uint32_t pitch, int x, int y) {
  using Tile = detail::Tile<T, Width, Height, Blocks, Transposed, Transformed>;
  detail::check_surface(p, width, height, pitch, x);
  simd<T, N> made(T(0));
  detail::each_row<T, Width, Height, Blocks>(
      p, width, height, pitch, x, y, [&](const T* row, int first, int end, int block, int r) ESIMD_HOST_MEMORY {
        esimd_host::on_global(row + first, (end - first) * sizeof(T), esimd_host::Access::read);
        T values[Width];
        esimd_host::copy(values + first, row + first, (end - first) * sizeof(T));
        for (int c = first; c < end; ++c) made.at(Tile::place(block, r, c)) = values[c];
      });
  return made;
}
template <class T, int Width, int Height = 1, int Blocks = 1, bool Transposed = false, bool Transformed = false,
          cache_hint = cache_hint::none, cache_hint = cache_hint::none,
          int N = detail::Tile<T, Width, Height, Blocks, Transposed, Transformed>::length>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_load_2d(config_2d_mem_access<T, Width, Height, Blocks>& block) {
  return lsc_load_2d<T, Width, Height, Blocks, Transposed, Transformed>(
      block.get_data_pointer(), block.get_surface_width(), block.get_surface_height(), block.get_surface_pitch(), block.get_x(),
      block.get_y());
}

template <class T, int Width, int Height = 1, cache_hint = cache_hint::none, cache_hint = cache_hint::none,
          int N = Width * Height>
ESIMD_HOST_MEMORY inline void lsc_store_2d(T* p, uint32_t width, uint32_t height, uint32_t pitch, int x, int y,
                                           simd<T, N> values) {
  static_assert(Height <= 8, "lsc_store_2d: up to 8 rows");
  detail::check_surface(p, width, height, pitch, x);
  detail::each_row<T, Width, Height, 1>(
      p, width, height, pitch, x, y, [&](const T* row, int first, int end, int, int r) ESIMD_HOST_MEMORY {
        esimd_host::on_global(row + first, (end - first) * sizeof(T), esimd_host::Access::write);
        esimd_host::copy(const_cast<T*>(row) + first, values.storage() + r * Width + first, (end - first) * sizeof(T));
      });
}
template <class T, int Width, int Height = 1, int Blocks = 1, cache_hint = cache_hint::none, cache_hint = cache_hint::none,
          int N = Width * Height>
ESIMD_HOST_MEMORY inline void lsc_store_2d(config_2d_mem_access<T, Width, Height, Blocks>& block,
                                           simd<T, N> values) {
  static_assert(Blocks == 1, "lsc_store_2d: one block");
  lsc_store_2d<T, Width, Height>(block.get_data_pointer(), block.get_surface_width(), block.get_surface_height(),
                                 block.get_surface_pitch(), block.get_x(), block.get_y(), values);
}

// A prefetch changes nothing that a kernel sees.
template <class T, int Width, int Height = 1, int Blocks = 1, bool = false, bool = false, cache_hint = cache_hint::none,
          cache_hint = cache_hint::none>
inline void lsc_prefetch_2d(config_2d_mem_access<T, Width, Height, Blocks>&) {}
template <class T, int Width, int Height = 1, int Blocks = 1, cache_hint = cache_hint::none, cache_hint = cache_hint::none>
inline void lsc_prefetch_2d(const T*, uint32_t, uint32_t, uint32_t, int, int) {}

}  // namespace sycl::ext::intel::experimental::esimd
