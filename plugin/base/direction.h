/* The two directions of a pass, and the two sides of an exchange. Forward, rows that a layer gathers are sent along the
 * edges of A; backward, their gradients are sent along A^T.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

enum gr_direction { GR_FORWARD, GR_BACKWARD };
enum { GR_DIRECTIONS = 2 };

enum gr_side { GR_SEND, GR_RECEIVE, GR_SIDES };

/** Translate a side of the forward exchange to `direction`: backward, a rank sends the gradients of those rows that it
 *  receives forward, and receives the gradients of those that it sends. */
static inline enum gr_side gr_side_of(enum gr_direction direction, enum gr_side side)
{
    return direction == GR_FORWARD ? side : side == GR_SEND ? GR_RECEIVE : GR_SEND;
}
