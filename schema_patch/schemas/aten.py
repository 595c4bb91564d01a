"""What functions and methods of torch give back, by their names: for the reading of C++ and of Python alike."""

from __future__ import annotations

# A view of what they are given, or it itself; torch's own list of its operators says so, or running them does.
VIEWS = frozenset(
    "_conj _fw_primal _indices _make_dual _ncf_unsqueeze _ncf_view _neg_view _nested_get_values "
    "_nested_view_from_buffer _nested_view_from_jagged _reshape_alias _sparse_broadcast_to "
    "_test_autograd_multiple_dispatch_view _unpack_dual _values adjoint alias as_strided atleast_1d atleast_2d "
    "atleast_3d broadcast_tensors broadcast_to ccol_indices chunk col_indices conj crow_indices data detach diagonal "
    "dsplit expand expand_as flatten_view hsplit imag indices lift_fresh linalg_diagonal local_value mH mT matrix_H "
    "meshgrid moveaxis movedim narrow numpy_T permute positive real row_indices select slice slice_inverse split "
    "split_with_sizes squeeze storage swapaxes swapdims t tensor_split transpose unbind unflatten unfold unsafe_chunk "
    "unsafe_split unsafe_split_with_sizes unsqueeze view view_as view_as_complex view_as_real vsplit".split()
)
# A copy, unless nothing would change.
PERHAPS = frozenset(
    "to cpu cuda type_as pin_memory coalesce _to_cpu _grad_sum_to_size _autocast_to_full_precision "
    "_autocast_to_reduced_precision".split()
)
# They keep statistics or noise in some of their arguments, if they are told to train: all but the first may be written.
TRAINS = frozenset(
    "batch_norm native_batch_norm cudnn_batch_norm miopen_batch_norm instance_norm batch_norm_gather_stats "
    "batch_norm_update_stats batch_norm_gather_stats_with_counts _batch_norm_impl_index _batch_norm_with_update "
    "_native_batch_norm_legit rrelu_with_noise fused_moving_avg_obs_fake_quant _fused_moving_avg_obs_fq_helper".split()
)
# A tensor is given other data, or another size.
REPLACES = frozenset("set_ resize_ resize_as_ set_data swap".split())
