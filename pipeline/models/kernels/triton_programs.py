"""Programs for a GPU, in Triton: short attention, residual connection with LayerNorm, ReLU layers, branches, softmax.

A program computes a tile. Every output belongs to one program, and sums have a fixed order. So results are a function
of the inputs alone.

Import this module only if Triton is installed. The functions that launch the programs are in `short_attention`,
`residual_norm`, `relu_layers` and `cross_entropy`.
"""

import triton
import triton.language as tl


@triton.jit
def keep_mask(seed, rows, threshold, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Draw which elements of some rows are kept: 16 random bits each, eight elements from one call of Philox."""
    calls: tl.constexpr = WIDTH // 8
    a, b, c, d = tl.randint4x(tl.load(seed), rows[:, None] * calls + tl.arange(0, calls)[None, :])
    words = tl.join(tl.join(a, b), tl.join(c, d)).to(tl.uint32, bitcast=True)
    halves = tl.join(words & 0xFFFF, words >> 16)
    return tl.reshape(halves, (ROWS, WIDTH)).to(tl.int32) >= threshold


@triton.jit
def attention_weights(q, k, bias, t, s, num_keys, scale, CAUSAL: tl.constexpr, BIASED: tl.constexpr):
    """Return softmax(q k^T scale + bias) over visible keys, in float32."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    if BIASED:
        scores += tl.load(bias + s, s < num_keys, 0.0).to(tl.float32)[None, :]
    visible = (s < num_keys)[None, :]
    if CAUSAL:
        visible = visible & (s[None, :] <= t[:, None])
    scores = tl.where(visible, scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    return weights / tl.sum(weights, 1)[:, None]


@triton.jit(do_not_specialize=["num_queries", "num_keys", "threshold"])
def attention_forward(
    queries,
    keys,
    values,
    bias,
    out,
    query_row,
    query_step,
    key_row,
    key_step,
    bias_row,
    heads,
    num_queries,
    num_keys,
    scale,
    seed,
    threshold,
    keep_scale,
    DROPS: tl.constexpr,
    CAUSAL: tl.constexpr,
    BIASED: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    VALUE_WIDTH: tl.constexpr,
):
    """Attend with one head of one sentence; `out` is (B, T, H d_v)."""
    row, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    t, s = tl.arange(0, QUERIES), tl.arange(0, KEYS)
    of_key, of_value = head * KEY_WIDTH + tl.arange(0, KEY_WIDTH), head * VALUE_WIDTH + tl.arange(0, VALUE_WIDTH)
    at_query, at_key = (t < num_queries)[:, None], (s < num_keys)[:, None]
    q = tl.load(queries + row * query_row + t[:, None] * query_step + of_key[None, :], at_query, 0.0)
    k = tl.load(keys + row * key_row + s[:, None] * key_step + of_key[None, :], at_key, 0.0)
    v = tl.load(values + row * key_row + s[:, None] * key_step + of_value[None, :], at_key, 0.0)
    weights = attention_weights(q, k, bias + row * bias_row, t, s, num_keys, scale, CAUSAL, BIASED)
    if DROPS:
        keep = keep_mask(seed, tl.program_id(0) * QUERIES + t, threshold, QUERIES, KEYS)
        weights = tl.where(keep, weights * keep_scale, 0.0)
    found = tl.dot(weights.to(v.dtype), v, input_precision="ieee")
    place = (row * num_queries + t[:, None]) * heads * VALUE_WIDTH + of_value[None, :]
    tl.store(out + place, found.to(out.dtype.element_ty), at_query)


@triton.jit(do_not_specialize=["num_queries", "num_keys", "threshold"])
def attention_backward(
    queries,
    keys,
    values,
    bias,
    grad_out,
    grad_queries,
    grad_keys,
    grad_values,
    query_row,
    query_step,
    key_row,
    key_step,
    bias_row,
    heads,
    num_queries,
    num_keys,
    scale,
    seed,
    threshold,
    keep_scale,
    DROPS: tl.constexpr,
    CAUSAL: tl.constexpr,
    BIASED: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    VALUE_WIDTH: tl.constexpr,
):
    """Differentiate one head of one sentence; gradients have the strides of their tensors."""
    row, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    t, s = tl.arange(0, QUERIES), tl.arange(0, KEYS)
    of_key, of_value = head * KEY_WIDTH + tl.arange(0, KEY_WIDTH), head * VALUE_WIDTH + tl.arange(0, VALUE_WIDTH)
    at_query, at_key = (t < num_queries)[:, None], (s < num_keys)[:, None]
    query_place = row * query_row + t[:, None] * query_step + of_key[None, :]
    key_place = row * key_row + s[:, None] * key_step + of_key[None, :]
    value_place = row * key_row + s[:, None] * key_step + of_value[None, :]
    out_place = (row * num_queries + t[:, None]) * heads * VALUE_WIDTH + of_value[None, :]
    q, k = tl.load(queries + query_place, at_query, 0.0), tl.load(keys + key_place, at_key, 0.0)
    v, grad = tl.load(values + value_place, at_key, 0.0), tl.load(grad_out + out_place, at_query, 0.0)
    weights = attention_weights(q, k, bias + row * bias_row, t, s, num_keys, scale, CAUSAL, BIASED)
    grad_weights, dropped = tl.dot(grad, tl.trans(v), input_precision="ieee"), weights
    if DROPS:
        keep = keep_mask(seed, tl.program_id(0) * QUERIES + t, threshold, QUERIES, KEYS)
        grad_weights = tl.where(keep, grad_weights * keep_scale, 0.0)
        dropped = tl.where(keep, weights * keep_scale, 0.0)
    grad_v = tl.dot(tl.trans(dropped.to(grad.dtype)), grad, input_precision="ieee")
    tl.store(grad_values + value_place, grad_v.to(v.dtype), at_key)
    centred = grad_weights - tl.sum(weights * grad_weights, 1)[:, None]
    grad_scores = (weights * centred * scale).to(q.dtype)
    tl.store(grad_queries + query_place, tl.dot(grad_scores, k, input_precision="ieee").to(q.dtype), at_query)
    grad_k = tl.dot(tl.trans(grad_scores), q, input_precision="ieee")
    tl.store(grad_keys + key_place, grad_k.to(k.dtype), at_key)


@triton.jit(do_not_specialize=["residual_rows", "threshold"])
def residual_norm_forward(
    residual,
    output,
    weight,
    bias,
    seed,
    total,
    normed,
    means,
    scales,
    residual_rows,
    eps,
    threshold,
    keep_scale,
    DROPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute LayerNorm(residual + Dropout(output)) of one row, and save the sum, its mean and 1 / deviation."""
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, WIDTH)
    x = tl.load(output + row * WIDTH + j).to(tl.float32)
    if DROPS:
        keep = tl.reshape(keep_mask(seed, tl.program_id(0) + tl.arange(0, 1), threshold, 1, WIDTH), (WIDTH,))
        x = tl.where(keep, x * keep_scale, 0.0)
    x = (x + tl.load(residual + row % residual_rows * WIDTH + j).to(tl.float32)).to(total.dtype.element_ty)
    tl.store(total + row * WIDTH + j, x)
    x = x.to(tl.float32)
    mean = tl.sum(x, 0) / WIDTH
    centred = x - mean
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / WIDTH + eps)
    y = centred * scale * tl.load(weight + j).to(tl.float32) + tl.load(bias + j).to(tl.float32)
    tl.store(normed + row * WIDTH + j, y.to(normed.dtype.element_ty))
    tl.store(means + row, mean)
    tl.store(scales + row, scale)


@triton.jit(do_not_specialize=["rows", "threshold"])
def residual_norm_backward(
    grad,
    total,
    weight,
    seed,
    means,
    scales,
    grad_residual,
    grad_output,
    grad_weight,
    grad_bias,
    rows,
    threshold,
    keep_scale,
    DROPS: tl.constexpr,
    ROWS: tl.constexpr,
    ROW_BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Differentiate ROWS rows; sums of these rows go into a row of grad_weight and grad_bias."""
    j, program = tl.arange(0, WIDTH), tl.program_id(0)
    of_weight, of_bias = tl.zeros((WIDTH,), tl.float32), tl.zeros((WIDTH,), tl.float32)
    w = tl.load(weight + j).to(tl.float32)[None, :]
    for first in range(0, ROWS, ROW_BLOCK):
        row = program * ROWS + first + tl.arange(0, ROW_BLOCK)
        place, real = row[:, None].to(tl.int64) * WIDTH + j[None, :], (row < rows)[:, None]
        g = tl.load(grad + place, real, 0.0).to(tl.float32)
        x = tl.load(total + place, real, 0.0).to(tl.float32)
        scale = tl.load(scales + row, row < rows, 0.0)[:, None]
        x = (x - tl.load(means + row, row < rows, 0.0)[:, None]) * scale
        of_weight += tl.sum(g * x, 0)
        of_bias += tl.sum(g, 0)
        g = g * w
        g = (g - (tl.sum(g, 1)[:, None] + x * tl.sum(g * x, 1)[:, None]) / WIDTH) * scale
        tl.store(grad_residual + place, g.to(grad_residual.dtype.element_ty), real)
        if DROPS:
            g = tl.where(keep_mask(seed, row, threshold, ROW_BLOCK, WIDTH), g * keep_scale, 0.0)
            tl.store(grad_output + place, g.to(grad_output.dtype.element_ty), real)
    tl.store(grad_weight + program * WIDTH + j, of_weight)
    tl.store(grad_bias + program * WIDTH + j, of_bias)


@triton.jit(do_not_specialize=["rows"])
def column_sums(x, sums, rows, columns, ROWS: tl.constexpr, ROW_BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    """Sum ROWS rows into a row of `sums`."""
    program, j = tl.program_id(0), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    x += program.to(tl.int64) * ROWS * columns
    total = tl.zeros((COLUMNS,), tl.float32)
    for first in range(0, ROWS, ROW_BLOCK):
        row = first + tl.arange(0, ROW_BLOCK)
        real = (program * ROWS + row < rows)[:, None] & (j < columns)[None, :]
        total += tl.sum(tl.load(x + row[:, None] * columns + j[None, :], real, 0.0).to(tl.float32), 0)
    tl.store(sums + program * columns + j, total, j < columns)


@triton.jit(do_not_specialize=["rows"])
def relu_backward(
    hidden, grad, grad_bias, rows, columns, ROWS: tl.constexpr, ROW_BLOCK: tl.constexpr, COLUMNS: tl.constexpr
):
    """Zero gradients in place where the ReLU is inactive, and sum ROWS rows of them into a row of grad_bias."""
    program, j = tl.program_id(0), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    grad += program.to(tl.int64) * ROWS * columns
    hidden += program.to(tl.int64) * ROWS * columns
    for first in range(0, ROWS, ROW_BLOCK):
        row = first + tl.arange(0, ROW_BLOCK)
        place = row[:, None] * columns + j[None, :]
        real = (program * ROWS + row < rows)[:, None] & (j < columns)[None, :]
        found = tl.load(grad + place, real, 0.0)
        found = tl.where(tl.load(hidden + place, real, 0.0) > 0, found, 0.0)
        tl.store(grad + place, found.to(grad.dtype.element_ty), real)
        total += tl.sum(found.to(tl.float32), 0)
    tl.store(grad_bias + program * columns + j, total, j < columns)


@triton.jit
def softmax_in_place(scores, partitions, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """Turn a row of scores into probabilities, and save its log-partition."""
    row = tl.program_id(0).to(tl.int64)
    scores += row * COLUMNS
    j = tl.arange(0, BLOCK)
    highest, mass = tl.full((BLOCK,), -1e30, tl.float32), tl.zeros((BLOCK,), tl.float32)
    for first in range(0, COLUMNS, BLOCK):
        x = tl.load(scores + first + j, first + j < COLUMNS, float("-inf")).to(tl.float32)
        above = tl.maximum(highest, x)
        mass = mass * tl.exp(highest - above) + tl.exp(x - above)
        highest = above
    top = tl.max(highest, 0)
    mass_sum = tl.sum(mass * tl.exp(highest - top), 0)
    log_partition = top + tl.log(mass_sum)
    tl.store(partitions + row, log_partition)
    for first in range(0, COLUMNS, BLOCK):
        x = tl.load(scores + first + j, first + j < COLUMNS, 0.0).to(tl.float32)
        tl.store(scores + first + j, tl.exp(x - log_partition).to(scores.dtype.element_ty), first + j < COLUMNS)


@triton.jit(do_not_specialize=["rows"])
def branches_forward(
    hidden, alpha, total, rows, columns, BRANCHES: tl.constexpr, ROW_BLOCK: tl.constexpr, COLUMNS: tl.constexpr
):
    """Sum a tile of all branches, weighted by alpha."""
    first, row = tl.program_id(0) * ROW_BLOCK, tl.arange(0, ROW_BLOCK)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    place = row[:, None] * columns + j[None, :]
    real = (first + row < rows)[:, None] & (j < columns)[None, :]
    found, start = tl.zeros((ROW_BLOCK, COLUMNS), tl.float32), first.to(tl.int64) * columns
    for branch in range(BRANCHES):
        x = tl.load(hidden + branch * rows.to(tl.int64) * columns + start + place, real, 0.0)
        found += tl.load(alpha + branch) * x.to(tl.float32)
    tl.store(total + start + place, found.to(total.dtype.element_ty), real)


@triton.jit(do_not_specialize=["rows"])
def branches_backward(
    hidden,
    alpha,
    grad,
    grad_hidden,
    grad_alpha,
    grad_bias,
    rows,
    columns,
    RELU: tl.constexpr,
    BRANCHES: tl.constexpr,
    ROWS: tl.constexpr,
    ROW_BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Differentiate sum_i alpha_i h_i in ROWS rows, with respect to h_i or, with RELU, to x_i if h_i = ReLU(x_i).

    Sums over these rows go into a row of grad_bias, with RELU, and for each branch into a place of grad_alpha.
    """
    program, j = tl.program_id(0), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    programs, of_program = tl.num_programs(0) * tl.num_programs(1), program * tl.num_programs(1) + tl.program_id(1)
    of_bias = tl.zeros((COLUMNS,), tl.float32)
    for branch in range(BRANCHES):
        weight, of_alpha = tl.load(alpha + branch), tl.zeros((COLUMNS,), tl.float32)
        start = (branch * rows.to(tl.int64) + program * ROWS) * columns
        for first in range(0, ROWS, ROW_BLOCK):
            row = first + tl.arange(0, ROW_BLOCK)
            place = row[:, None] * columns + j[None, :]
            real = (program * ROWS + row < rows)[:, None] & (j < columns)[None, :]
            g = tl.load(grad + program.to(tl.int64) * ROWS * columns + place, real, 0.0).to(tl.float32)
            x = tl.load(hidden + start + place, real, 0.0).to(tl.float32)
            of_alpha += tl.sum(g * x, 0)
            g = weight * g
            if RELU:
                g = tl.where(x > 0, g, 0.0)
                of_bias += tl.sum(g, 0)
            tl.store(grad_hidden + start + place, g.to(grad_hidden.dtype.element_ty), real)
        tl.store(grad_alpha + branch * programs + of_program, tl.sum(of_alpha, 0))
    if RELU:
        tl.store(grad_bias + program * columns + j, of_bias, j < columns)
