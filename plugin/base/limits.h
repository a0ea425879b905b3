/* Sizes of chunks, blocks and buffers. Results are correct with any positive value that meets the conditions stated
 * below. A build with meson option small_limits has small values, so that tests with few rows meet every boundary.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#ifdef GR_SMALL_LIMITS
#define GR_LIMIT(usual, small) (small)
#else
#define GR_LIMIT(usual, small) (usual)
#endif

enum {
    /* Loops over rows and edges. Sums are formed chunk by chunk, so these sizes affect the rounding of results. */
    GR_OPERATIONS_OF_THREAD = GR_LIMIT(65536, 1024), /* operations that justify one more thread */
    GR_ROWS_AT_ONCE = GR_LIMIT(64, 2),               /* rows of messages, and of kernels that report rows */
    GR_CHUNK_ROWS = GR_LIMIT(512, 2),                /* rows of layers in a chunk */
    GR_MGN_ROWS = GR_LIMIT(240, 4),                  /* nodes or edges of model mgn: a multiple of the 2 to 48
                                                        rows that libraries compute together, unless small */
    GR_CHUNK_COLUMNS = GR_LIMIT(16, 2),              /* columns of sums over labels */
    GR_EDGE_PIECE = GR_LIMIT(4096, 8),               /* edges and rows of the edge operators */
    GR_ADD_COLUMNS = GR_LIMIT(16, 1),                /* the fewest columns that a thread of index_add takes */
    GR_ADD_SORTED_BYTES = GR_LIMIT(1 << 20, 64),     /* index_add sorts the index if its result has more bytes */
    GR_ADD_SORTED_ROWS = GR_LIMIT(16, 1),            /* and on average more numbers than this are added to a row */
    GR_SORT_BY_INSERTION = GR_LIMIT(64, 2),          /* the most entries of a row for insertion sort */
    GR_JOINT_ROWS_LEAST = GR_LIMIT(64, 8),           /* fewest rows of a block in joint partitions; affects results */

    /* Evaluation by blocks of rows: the bytes for copies of rows in a block, but at least this many rows; and the size
     * of all activations above which eval.blocks=auto uses blocks. */
    GR_EVALUATION_BYTES = GR_LIMIT(32 << 20, 1024),
    GR_EVALUATION_SOURCES_LEAST = GR_LIMIT(1024, 8),
    GR_EVALUATION_WHOLE_BYTES = GR_LIMIT(1 << 30, 1 << 16),

    /* Kernel simd: entries and rows of a task, approximately. A row with more than twice as many entries is cut into
     * segments of this size, whose results are combined in order, independently of the threads. */
    GR_TASK_ENTRIES = GR_LIMIT(8192, 4),
    GR_TASK_ROWS = GR_LIMIT(1024, 2),
    GR_SIMD_STRIP = GR_LIMIT(256, 64),     /* columns of one sweep over a row: a power of two, at least 64 */
    GR_REPORT_BYTES = GR_LIMIT(65536, 64), /* bytes of rows that are reported together */

    /* Messages and files, in bytes. */
    GR_CRC_PIECE = GR_LIMIT(1024 * 1024, 64), /* bytes whose CRC a thread computes at once: some tens of us */
    GR_CRC_THREE_FROM = GR_LIMIT(24576, 192), /* bytes from which three CRCs are computed side by side; at least 24 */
    GR_EAGER_BYTES = GR_LIMIT(1024, 512),     /* longest copied message between threads; at least a notice */
    GR_MOVE_BUFFER = GR_LIMIT(32 << 20, 64),  /* bytes of rows that are redistributed at a time */
    GR_MOVE_STRIP_LEAST = GR_LIMIT(32, 4),    /* but at least so many bytes of each row */
    GR_CHILD_BUFFER = GR_LIMIT(1 << 14, 64),  /* bytes of a message to a partitioner; a multiple of 8 */
    GR_TEXT_BUFFER = GR_LIMIT(1 << 16, 64),   /* bytes of a Matrix Market file that are read at once */
    GR_EDGES_AT_ONCE = GR_LIMIT(2048, 2)      /* edges of a .npy file that are read at once */
};
