/* The two directions of a pass. Rows that a layer gathers go forward, along A; their gradients go backward, along A^T.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

enum gr_direction { GR_FORWARD, GR_BACKWARD };
enum { GR_DIRECTIONS = 2 };
