// Tensors as the float64 recurrences take them and give them back.
#pragma once

#include <ATen/core/Tensor.h>

#include <Eigen/Core>

#include <vector>

namespace replayeval {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// All elements, in the tensor's order.
Eigen::VectorXd vector_of(const at::Tensor& tensor);

// rows: [1, T, width] -> [T, width] float64 on the CPU.
at::Tensor one_sequence(const at::Tensor& rows);

// Part of token t of one_sequence()'s rows, from channel `begin` on, as [rows, columns].
Eigen::Map<const RowMajor> part_of(const at::Tensor& rows, std::int64_t t, std::int64_t begin, Eigen::Index height,
                                   Eigen::Index width);

// Appends a matrix row by row.
void append(const RowMajor& matrix, std::vector<double>& values);

}  // namespace replayeval
