// Normalization of rows: plain arguments. Names as in catena/kernels/row_normalization.h.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// gamma or beta: of the storage type where it is there and narrow, else of the compute type, as
// statistics and scratch are.
struct RowParameter {
  const void* data;  // null: there is none
  bool narrow;
};
struct RowParameterGradient {
  void* data;  // null: not wanted
  bool narrow;
  bool accumulate;
};

struct RowNormalizationArgs {
  int64_t samples, positions, channels, inner, groups;
  bool aligned;  // all addresses are multiples of 16
  bool centred;
  double eps;
  const void* x;
  const void* gy;  // gradient only
  RowParameter gamma, beta;
  void* y;               // y, or gx
  void* statistics;      // written by the forward kernel
  int parts;             // of a row, as row_parts() says
  void* partials;        // of several parts: four numbers for each
  int shared_memory;     // bytes that a block may opt into
  const void* residual;  // forward: added to x before rows are normalized; may be null
  void* sum;             // x + residual
  const void* gsum;      // gradient: added to that of x; may be null

  // Such rows have kernels of plain rows and of clusters, and in row_normalization.cu and
  // row_gradient.cu alone.
  bool has_sum() const { return residual != nullptr || gsum != nullptr; }
};

struct RowParameterArgs {
  int64_t outer, channels, inner;  // as batch normalization has them; outer: samples * positions
  int64_t positions, groups, rows;
  bool aligned;  // x and gy
  bool centred;
  const void* x;
  const void* gy;
  const void* statistics;
  RowParameterGradient gamma, beta;
  int splits;      // as normalization_walk() says
  void* partials;  // as many numbers as it says
};

// Gradients of gamma and beta that a gradient of x makes on its way.
struct RowParameterSums {
  RowParameterGradient gamma, beta;
  void* partials;  // null: neither wanted; else as many numbers as the kernels' function of
                   // partials says, and where there is none two for each channel of each sample
};

void launch_row_normalization(Float type, const RowNormalizationArgs& args, const Launch& launch);
// Computes gx.
void launch_row_gradient(Float type, const RowNormalizationArgs& args, const Launch& launch);
// In how many parts rows should be computed: several where there are few and long ones.
int row_parts(Float type, const RowNormalizationArgs& args, const Launch& launch);
// The same in several parts.
void launch_row_parts(Float type, const RowNormalizationArgs& args, const Launch& launch);
void launch_row_parts_gradient(Float type, const RowNormalizationArgs& args, const Launch& launch);
// The same for groups of few channels that are last in memory, for which has_strips() holds.
bool has_strips(const RowNormalizationArgs& args);
void launch_strips(Float type, const RowNormalizationArgs& args, const Launch& launch);
// Computes gx, g_gamma and g_beta; for strips that make enough blocks or have no lines.
bool has_strip_gradient(Float type, const RowNormalizationArgs& args, const Launch& launch);
void launch_strip_gradient(Float type, const RowNormalizationArgs& args,
                           const RowParameterSums& parameters, const Launch& launch);
// The same for rows that fit the registers of a block, for which has_plain_rows() holds.
bool has_plain_rows(Float type, const RowNormalizationArgs& args);
void launch_plain_rows(Float type, const RowNormalizationArgs& args, const Launch& launch);
// The same in 16 bits with a gamma for each element; launch_plain_rows() calls it.
void launch_narrow_rows(Float type, const RowNormalizationArgs& args, const Launch& launch);
// Computes gx, unless args.y is null, and g_gamma and g_beta.
bool has_plain_gradient(Float type, const RowNormalizationArgs& args);
int64_t plain_gradient_partials(const RowNormalizationArgs& args, const Launch& launch);
void launch_plain_gradient(Float type, const RowNormalizationArgs& args,
                           const RowParameterSums& parameters, const Launch& launch);
// The same for rows that are channels; launch_plain_gradient() calls it.
void launch_channel_gradient(Float type, const RowNormalizationArgs& args,
                             const RowParameterSums& parameters, const Launch& launch);
// The same for long rows by clusters of blocks; false, and nothing done, for others and on GPUs
// without clusters.
bool launch_cluster_rows(Float type, const RowNormalizationArgs& args, const Launch& launch);
// Computes gx, unless args.y is null, and g_gamma and g_beta, where cluster_gradient_partials() is
// not 0.
int64_t cluster_gradient_partials(Float type, const RowNormalizationArgs& args,
                                  const Launch& launch);
void launch_cluster_gradient(Float type, const RowNormalizationArgs& args,
                             const RowParameterSums& parameters, const Launch& launch);
// The same for rows of several channels that fit the shared memory of a block; false, and nothing
// done, for others.
bool launch_kept_rows(Float type, const RowNormalizationArgs& args, const Launch& launch);
// Computes gx, g_gamma and g_beta.
bool has_kept_gradient(Float type, const RowNormalizationArgs& args, const Launch& launch);
void launch_kept_gradient(Float type, const RowNormalizationArgs& args,
                          const RowParameterSums& parameters, const Launch& launch);
// The same for other rows where a channel has several positions.
bool has_line_gradient(Float type, const RowNormalizationArgs& args);
int64_t line_gradient_partials(Float type, const RowNormalizationArgs& args, const Launch& launch);
// `parameters` has partials even if neither g_gamma nor g_beta is wanted.
void launch_line_gradient(Float type, const RowNormalizationArgs& args,
                          const RowParameterSums& parameters, const Launch& launch);
// Computes g_gamma and g_beta.
void launch_row_parameters(Float type, const RowParameterArgs& args, const Launch& launch);

}  // namespace catena::gpu
