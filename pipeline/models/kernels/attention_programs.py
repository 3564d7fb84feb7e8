"""Programs of short attention for a GPU, in Triton; `short_attention` launches them.

A program computes one head of one sentence: head program_id(0) of sentence program_id(1). Queries, keys and values
stand side by side in a joint projection. In attention over another sequence, the queries have a tensor of their own.

Import this module only if Triton is installed.
"""

import triton
import triton.language as tl

from pipeline.models.kernels.triton_programs import keep_mask


@triton.jit
def head_places(
    num_queries,
    num_keys,
    JOINT: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    VALUE_WIDTH: tl.constexpr,
):
    """Return the places of queries, keys, values and outputs of head program_id(0) of sentence program_id(1).

    With JOINT the queries stand before keys and values in the joint projection, else in a tensor of their own.
    """
    head, heads, row = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    query_row = (row * num_queries + tl.arange(0, QUERIES)[:, None]) * heads
    key_row = (row * num_keys + tl.arange(0, KEYS)[:, None]) * heads
    of_key = head * KEY_WIDTH + tl.arange(0, KEY_WIDTH)[None, :]
    of_value = head * VALUE_WIDTH + tl.arange(0, VALUE_WIDTH)[None, :]
    before_keys: tl.constexpr = KEY_WIDTH if JOINT else 0
    width: tl.constexpr = before_keys + KEY_WIDTH + VALUE_WIDTH
    query_place = query_row * (width if JOINT else KEY_WIDTH) + of_key
    key_place = key_row * width + heads * before_keys + of_key
    value_place = key_row * width + heads * (before_keys + KEY_WIDTH) + of_value
    return query_place, key_place, value_place, query_row * VALUE_WIDTH + of_value


@triton.jit
def attention_weights(q, k, bias, bias_row, num_keys, CAUSAL: tl.constexpr):
    """Return softmax(q k^T / sqrt(d_k) + bias) over visible keys, in float32."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * q.shape[1] ** -0.5
    s = tl.arange(0, k.shape[0])
    if bias is not None:
        bias += tl.program_id(1).to(tl.int64) * bias_row
        scores += tl.load(bias + s, s < num_keys, 0.0).to(tl.float32)[None, :]
    visible = (s < num_keys)[None, :]
    if CAUSAL:
        visible = visible & (s[None, :] <= tl.arange(0, q.shape[0])[:, None])
    scores = tl.where(visible, scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    return weights / tl.sum(weights, 1)[:, None]


@triton.jit
def kept_weights(seed, threshold, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """Draw which weights of the program's head are kept."""
    head = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    return keep_mask(seed, head * QUERIES + tl.arange(0, QUERIES), threshold, QUERIES, KEYS)


@triton.jit(do_not_specialize=["num_queries", "num_keys", "threshold"])
def attention_forward(
    queries,
    projected,
    bias,
    out,
    bias_row,
    num_queries,
    num_keys,
    seed,
    threshold,
    keep_scale,
    CAUSAL: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    VALUE_WIDTH: tl.constexpr,
):
    """Attend with one head of one sentence; `out` is (B, T, H d_v). Without `queries`, `projected` has them, too."""
    query_place, key_place, value_place, out_place = head_places(
        num_queries, num_keys, queries is None, QUERIES, KEYS, KEY_WIDTH, VALUE_WIDTH
    )
    if queries is None:
        queries = projected
    real_query, real_key = (tl.arange(0, QUERIES) < num_queries)[:, None], (tl.arange(0, KEYS) < num_keys)[:, None]
    q, k = tl.load(queries + query_place, real_query, 0.0), tl.load(projected + key_place, real_key, 0.0)
    v = tl.load(projected + value_place, real_key, 0.0)
    weights = attention_weights(q, k, bias, bias_row, num_keys, CAUSAL)
    if seed is not None:
        weights = tl.where(kept_weights(seed, threshold, QUERIES, KEYS), weights * keep_scale, 0.0)
    found = tl.dot(weights.to(v.dtype), v, input_precision="ieee")
    tl.store(out + out_place, found.to(out.dtype.element_ty), real_query)


@triton.jit(do_not_specialize=["num_queries", "num_keys", "threshold"])
def attention_backward(
    queries,
    projected,
    bias,
    grad_out,
    grad_queries,
    grad_projected,
    bias_row,
    num_queries,
    num_keys,
    seed,
    threshold,
    keep_scale,
    CAUSAL: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    VALUE_WIDTH: tl.constexpr,
):
    """Differentiate one head of one sentence; gradients have the layout of their tensors."""
    query_place, key_place, value_place, out_place = head_places(
        num_queries, num_keys, queries is None, QUERIES, KEYS, KEY_WIDTH, VALUE_WIDTH
    )
    if queries is None:
        queries, grad_queries = projected, grad_projected
    real_query, real_key = (tl.arange(0, QUERIES) < num_queries)[:, None], (tl.arange(0, KEYS) < num_keys)[:, None]
    q, k = tl.load(queries + query_place, real_query, 0.0), tl.load(projected + key_place, real_key, 0.0)
    v, grad = tl.load(projected + value_place, real_key, 0.0), tl.load(grad_out + out_place, real_query, 0.0)
    weights = attention_weights(q, k, bias, bias_row, num_keys, CAUSAL)
    grad_weights, dropped = tl.dot(grad, tl.trans(v), input_precision="ieee"), weights
    if seed is not None:
        keep = kept_weights(seed, threshold, QUERIES, KEYS)
        grad_weights = tl.where(keep, grad_weights * keep_scale, 0.0)
        dropped = tl.where(keep, weights * keep_scale, 0.0)
    grad_v = tl.dot(tl.trans(dropped.to(grad.dtype)), grad, input_precision="ieee")
    tl.store(grad_projected + value_place, grad_v.to(v.dtype), real_key)
    centred = grad_weights - tl.sum(weights * grad_weights, 1)[:, None]
    grad_scores = (weights * centred * KEY_WIDTH**-0.5).to(q.dtype)
    tl.store(grad_queries + query_place, tl.dot(grad_scores, k, input_precision="ieee").to(q.dtype), real_query)
    grad_k = tl.dot(tl.trans(grad_scores), q, input_precision="ieee")
    tl.store(grad_projected + key_place, grad_k.to(k.dtype), real_key)
