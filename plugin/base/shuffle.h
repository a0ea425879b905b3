/* Permutes the elements of vectors. gcc has a builtin for this; that of clang only accepts indices known at compile
 * time.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

/** Element i of the result is element index[i] of v, or of v followed by w. All vectors have the same length, and each
 *  index is in range. */
#if defined(__clang__)
#define GR_SHUFFLE(v, index)                                                                                           \
    __extension__({                                                                                                    \
        const __typeof__(v)     of_ = (v);                                                                             \
        const __typeof__(index) at_ = (index);                                                                         \
        __typeof__(v)           to_;                                                                                   \
        for (unsigned i_ = 0; i_ < sizeof of_ / sizeof of_[0]; i_++) to_[i_] = of_[at_[i_]];                           \
        to_;                                                                                                           \
    })
#define GR_SHUFFLE_TWO(v, w, index)                                                                                    \
    __extension__({                                                                                                    \
        const __typeof__(v)     of_ = (v), or_ = (w);                                                                  \
        const __typeof__(index) at_ = (index);                                                                         \
        const unsigned          n_ = sizeof of_ / sizeof of_[0];                                                       \
        __typeof__(v)           to_;                                                                                   \
        for (unsigned i_ = 0; i_ < n_; i_++) to_[i_] = at_[i_] < n_ ? of_[at_[i_]] : or_[at_[i_] - n_];                \
        to_;                                                                                                           \
    })
#else
#define GR_SHUFFLE(v, index) __builtin_shuffle(v, index)
#define GR_SHUFFLE_TWO(v, w, index) __builtin_shuffle(v, w, index)
#endif
