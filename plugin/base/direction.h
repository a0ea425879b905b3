/* The two directions of a pass: rows that a layer gathers go forward, along A, and their gradients backward, along
 * A^T. The two sides of an exchange.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

enum gr_direction { GR_FORWARD, GR_BACKWARD };
enum { GR_DIRECTIONS = 2 };

enum gr_side { GR_SEND, GR_RECEIVE, GR_SIDES };

/** The side whose rows are sent, or received, in a direction, where sides are counted forward: backward, the same rows
 *  go the other way. */
static inline enum gr_side gr_side_of(enum gr_direction direction, enum gr_side side)
{
    return direction == GR_FORWARD ? side : side == GR_SEND ? GR_RECEIVE : GR_SEND;
}
