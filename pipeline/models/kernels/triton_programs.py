"""Programs for a GPU, in Triton: embedding, residual connection with LayerNorm, ReLU layers, branches, softmax.

A program computes a tile. Every output belongs to one program, and sums have a fixed order. So results are a function
of the inputs alone.

Import this module only if Triton is installed. The functions that launch the programs are in `fused_dropout`,
`relu_layers` and `cross_entropy`. attention_programs.py has the programs of attention.
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
def drop(x, seed, threshold, keep_scale, WIDTH: tl.constexpr):
    """Apply dropout to row program_id(0) of a matrix, if there is a seed."""
    if seed is not None:
        keep = keep_mask(seed, tl.program_id(0) + tl.arange(0, 1), threshold, 1, WIDTH)
        x = tl.where(tl.reshape(keep, (WIDTH,)), x * keep_scale, 0.0)
    return x


@triton.jit(do_not_specialize=["position_rows", "threshold"])
def embed_forward(
    tokens, table, positions, out, seed, position_rows, scale, threshold, keep_scale, WIDTH: tl.constexpr
):
    """Embed a symbol: Dropout(embedding · scale + position)."""
    row, j = tl.program_id(0).to(tl.int64), tl.arange(0, WIDTH)
    x = tl.load(table + tl.load(tokens + row) * WIDTH + j) * scale
    x = drop(x + tl.load(positions + row % position_rows * WIDTH + j), seed, threshold, keep_scale, WIDTH)
    tl.store(out + row * WIDTH + j, x.to(out.dtype.element_ty))


@triton.jit(do_not_specialize=["threshold"])
def embed_backward(grad, grad_rows, seed, scale, threshold, keep_scale, WIDTH: tl.constexpr):
    """Differentiate with respect to the embedding of a symbol."""
    place = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    x = drop(tl.load(grad + place).to(tl.float32), seed, threshold, keep_scale, WIDTH)
    tl.store(grad_rows + place, (x * scale).to(grad_rows.dtype.element_ty))


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
    WIDTH: tl.constexpr,
):
    """Compute LayerNorm(residual + Dropout(output)) of one row, and save the sum, its mean and 1 / deviation."""
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, WIDTH)
    x = drop(tl.load(output + row * WIDTH + j).to(tl.float32), seed, threshold, keep_scale, WIDTH)
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
        if seed is not None:
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
