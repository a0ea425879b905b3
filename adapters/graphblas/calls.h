/* A table of the functions of GraphBLAS that the drop-in and the kernel use. It is filled at run time, because only the
 * process determines the version. The declarations follow the user guides of SuiteSparse:GraphBLAS 7.4 and 10. A source
 * file for one version defines GRAFT_GRB_CALLS as this version before it includes this header and graft_grb.h; a source
 * file for all versions defines it as 0.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_CALLS_H
#define GRAFT_GRB_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t                     GrB_Index;
typedef int                          GrB_Info;
typedef struct GB_Type_opaque       *GrB_Type;
typedef struct GB_BinaryOp_opaque   *GrB_BinaryOp;
typedef struct GB_Monoid_opaque     *GrB_Monoid;
typedef struct GB_Semiring_opaque   *GrB_Semiring;
typedef struct GB_Descriptor_opaque *GrB_Descriptor;
typedef struct GB_Matrix_opaque     *GrB_Matrix;
typedef struct GB_Vector_opaque     *GrB_Vector;
typedef struct GB_Iterator_opaque   *GxB_Iterator;
typedef int                          grb_field; /* a field of a descriptor, or an option */

/* Codes and values that are the same in all versions. */
enum {
    GrB_SUCCESS = 0,
    GrB_NO_VALUE = 1,
    GrB_NULL_POINTER = -2,
    GrB_DOMAIN_MISMATCH = -5,
    GrB_NOT_IMPLEMENTED = -8,
    GrB_PANIC = -101,
    GrB_OUT_OF_MEMORY = -102,
    GrB_MATERIALIZE = 1,
    GrB_OUTP = 0,
    GrB_MASK = 1,
    GrB_INP0 = 2,
    GrB_INP1 = 3,
    GrB_REPLACE = 1,
    GrB_COMP = 2,
    GrB_TRAN = 3,
    GrB_STRUCTURE = 4,
    GxB_BY_ROW = 0,
    GxB_BY_COL = 1,
    GxB_HYPERSPARSE = 1,
    GxB_SPARSE = 2,
    GxB_BITMAP = 4,
    GxB_FULL = 8
};

#define GRB_FUNCTIONS(F)                                                                                               \
    F(GrB_init, (int))                                                                                                 \
    F(GrB_Matrix_wait, (GrB_Matrix, int))                                                                              \
    F(GrB_Descriptor_new, (GrB_Descriptor *))                                                                          \
    F(GrB_Descriptor_free, (GrB_Descriptor *))                                                                         \
    F(GxB_Desc_set_INT32, (GrB_Descriptor, grb_field, int32_t))                                                        \
    F(GxB_Matrix_pack_CSR,                                                                                             \
      (GrB_Matrix, GrB_Index **, GrB_Index **, void **, GrB_Index, GrB_Index, GrB_Index, bool, bool, GrB_Descriptor))  \
    F(GxB_Matrix_unpack_CSR, (GrB_Matrix, GrB_Index **, GrB_Index **, void **, GrB_Index *, GrB_Index *, GrB_Index *,  \
                              bool *, bool *, GrB_Descriptor))                                                         \
    F(GrB_Matrix_new, (GrB_Matrix *, GrB_Type, GrB_Index, GrB_Index))                                                  \
    F(GrB_Matrix_free, (GrB_Matrix *))                                                                                 \
    F(GrB_Matrix_dup, (GrB_Matrix *, GrB_Matrix))                                                                      \
    F(GrB_Vector_dup, (GrB_Vector *, GrB_Vector))                                                                      \
    F(GrB_Vector_free, (GrB_Vector *))                                                                                 \
    F(GrB_Matrix_nrows, (GrB_Index *, GrB_Matrix))                                                                     \
    F(GrB_Matrix_ncols, (GrB_Index *, GrB_Matrix))                                                                     \
    F(GrB_Matrix_nvals, (GrB_Index *, GrB_Matrix))                                                                     \
    F(GrB_Matrix_setElement_FP64, (GrB_Matrix, double, GrB_Index, GrB_Index))                                          \
    F(GrB_Matrix_assign, (GrB_Matrix, GrB_Matrix, GrB_BinaryOp, GrB_Matrix, const GrB_Index *, GrB_Index,              \
                          const GrB_Index *, GrB_Index, GrB_Descriptor))                                               \
    F(GrB_Matrix_assign_FP64, (GrB_Matrix, GrB_Matrix, GrB_BinaryOp, double, const GrB_Index *, GrB_Index,             \
                               const GrB_Index *, GrB_Index, GrB_Descriptor))                                          \
    F(GrB_transpose, (GrB_Matrix, GrB_Matrix, GrB_BinaryOp, GrB_Matrix, GrB_Descriptor))                               \
    F(GrB_mxm, (GrB_Matrix, GrB_Matrix, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Matrix, GrB_Descriptor))           \
    F(GrB_mxv, (GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Vector, GrB_Descriptor))           \
    F(GrB_vxm, (GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Vector, GrB_Matrix, GrB_Descriptor))           \
    F(GxB_Iterator_new, (GxB_Iterator *))                                                                              \
    F(GxB_Iterator_free, (GxB_Iterator *))                                                                             \
    F(GxB_Matrix_Iterator_attach, (GxB_Iterator, GrB_Matrix, GrB_Descriptor))                                          \
    F(GxB_Matrix_type, (GrB_Type *, GrB_Matrix))                                                                       \
    F(GxB_Matrix_Option_set_INT32, (GrB_Matrix, grb_field, int32_t))                                                   \
    F(GxB_Matrix_Option_get_INT32, (GrB_Matrix, grb_field, int32_t *))                                                 \
    F(GxB_Global_Option_get, (int, ...))                                                                               \
    F(GxB_Global_Option_get_INT32, (grb_field, int32_t *))                                                             \
    F(GxB_Global_Option_get_FUNCTION, (grb_field, void **))                                                            \
    F(GxB_Global_Option_set_INT32, (grb_field, int32_t))                                                               \
    F(GxB_Desc_get_INT32, (GrB_Descriptor, grb_field, int32_t *))                                                      \
    F(GxB_Semiring_add, (GrB_Monoid *, GrB_Semiring))                                                                  \
    F(GxB_Semiring_multiply, (GrB_BinaryOp *, GrB_Semiring))                                                           \
    F(GxB_Monoid_operator, (GrB_BinaryOp *, GrB_Monoid))                                                               \
    F(GxB_Matrix_pack_FullR, (GrB_Matrix, void **, GrB_Index, bool, GrB_Descriptor))                                   \
    F(GxB_Matrix_pack_FullC, (GrB_Matrix, void **, GrB_Index, bool, GrB_Descriptor))                                   \
    F(GxB_Matrix_pack_BitmapR,                                                                                         \
      (GrB_Matrix, int8_t **, void **, GrB_Index, GrB_Index, bool, GrB_Index, GrB_Descriptor))                         \
    F(GxB_Matrix_pack_BitmapC,                                                                                         \
      (GrB_Matrix, int8_t **, void **, GrB_Index, GrB_Index, bool, GrB_Index, GrB_Descriptor))                         \
    F(GxB_Matrix_unpack_FullR, (GrB_Matrix, void **, GrB_Index *, bool *, GrB_Descriptor))                             \
    F(GxB_Matrix_unpack_FullC, (GrB_Matrix, void **, GrB_Index *, bool *, GrB_Descriptor))                             \
    F(GxB_Matrix_unpack_BitmapR,                                                                                       \
      (GrB_Matrix, int8_t **, void **, GrB_Index *, GrB_Index *, bool *, GrB_Index *, GrB_Descriptor))                 \
    F(GxB_Matrix_unpack_BitmapC,                                                                                       \
      (GrB_Matrix, int8_t **, void **, GrB_Index *, GrB_Index *, bool *, GrB_Index *, GrB_Descriptor))

#define GRB_OBJECTS(F)                                                                                                 \
    F(GrB_Type, GrB_BOOL)                                                                                              \
    F(GrB_Type, GrB_INT8)                                                                                              \
    F(GrB_Type, GrB_INT16)                                                                                             \
    F(GrB_Type, GrB_INT32)                                                                                             \
    F(GrB_Type, GrB_INT64)                                                                                             \
    F(GrB_Type, GrB_UINT8)                                                                                             \
    F(GrB_Type, GrB_UINT16)                                                                                            \
    F(GrB_Type, GrB_UINT32)                                                                                            \
    F(GrB_Type, GrB_UINT64)                                                                                            \
    F(GrB_Type, GrB_FP32)                                                                                              \
    F(GrB_Type, GrB_FP64)                                                                                              \
    F(GrB_BinaryOp, GrB_PLUS_FP32)                                                                                     \
    F(GrB_BinaryOp, GrB_PLUS_FP64)                                                                                     \
    F(GrB_BinaryOp, GrB_MAX_FP32)                                                                                      \
    F(GrB_BinaryOp, GrB_MAX_FP64)                                                                                      \
    F(GrB_BinaryOp, GrB_MIN_FP32)                                                                                      \
    F(GrB_BinaryOp, GrB_MIN_FP64)                                                                                      \
    F(GrB_BinaryOp, GrB_TIMES_FP32)                                                                                    \
    F(GrB_BinaryOp, GrB_TIMES_FP64)                                                                                    \
    F(GrB_BinaryOp, GrB_FIRST_FP32)                                                                                    \
    F(GrB_BinaryOp, GrB_FIRST_FP64)                                                                                    \
    F(GrB_BinaryOp, GrB_SECOND_FP32)                                                                                   \
    F(GrB_BinaryOp, GrB_SECOND_FP64)                                                                                   \
    F(GrB_BinaryOp, GrB_ONEB_FP32)                                                                                     \
    F(GrB_BinaryOp, GrB_ONEB_FP64)                                                                                     \
    F(GrB_Semiring, GrB_PLUS_TIMES_SEMIRING_FP32)                                                                      \
    F(GrB_Semiring, GrB_PLUS_TIMES_SEMIRING_FP64)                                                                      \
    F(GrB_Semiring, GrB_MAX_TIMES_SEMIRING_FP32)                                                                       \
    F(GrB_Semiring, GrB_MAX_TIMES_SEMIRING_FP64)                                                                       \
    F(GrB_Semiring, GrB_MIN_TIMES_SEMIRING_FP32)                                                                       \
    F(GrB_Semiring, GrB_MIN_TIMES_SEMIRING_FP64)                                                                       \
    F(GrB_Semiring, GxB_MAX_SECOND_FP32)                                                                               \
    F(GrB_Semiring, GxB_MAX_SECOND_FP64)                                                                               \
    F(GrB_Semiring, GxB_MIN_SECOND_FP32)                                                                               \
    F(GrB_Semiring, GxB_MIN_SECOND_FP64)                                                                               \
    F(GrB_Descriptor, GrB_DESC_S)                                                                                      \
    F(GrB_Descriptor, GrB_DESC_C)                                                                                      \
    F(GrB_Descriptor, GrB_DESC_SC)                                                                                     \
    F(GrB_Descriptor, GrB_DESC_R)                                                                                      \
    F(GrB_Descriptor, GrB_DESC_RS)                                                                                     \
    F(GrB_Descriptor, GrB_DESC_RC)                                                                                     \
    F(GrB_Descriptor, GrB_DESC_RSC)                                                                                    \
    F(const GrB_Index *, GrB_ALL)

#define GRB_FUNCTION_FIELD(name, parameters) GrB_Info(*name##_) parameters;
#define GRB_OBJECT_FIELD(type, name) type const *name##_;

/** A GraphBLAS library that is loaded in this process. */
struct grb_calls {
    GRB_FUNCTIONS(GRB_FUNCTION_FIELD)
    GRB_OBJECTS(GRB_OBJECT_FIELD)
    GrB_Info (*GrB_Matrix_get_INT32_)(GrB_Matrix, int32_t *, int); /* this pointer is NULL before version 9 */
};

/** Fill the table with functions of a library, or with RTLD_DEFAULT of the process. \return 1 if all are found;
 * otherwise 0, and missing functions are NULL. [any-thread] */
int grb_calls_fill(struct grb_calls *calls, void *handle);

/** Ask a library for its major version. \return 0 if the library is not started, or was finalised */
int grb_calls_major(const struct grb_calls *calls);

#if defined(GRAFT_GRB_CALLS) && GRAFT_GRB_CALLS > 0
/* The GraphBLAS of the call that runs in this thread. Source files for all versions have a local variable of this name
 * instead. */
extern _Thread_local const struct grb_calls *grb_calls;
#endif

#ifdef GRAFT_GRB_CALLS

#if GRAFT_GRB_CALLS > 0
#define GxB_IMPLEMENTATION_MAJOR GRAFT_GRB_CALLS
#endif

#define GrB_Matrix_wait grb_calls->GrB_Matrix_wait_
#define GrB_Descriptor_new grb_calls->GrB_Descriptor_new_
#define GrB_Descriptor_free grb_calls->GrB_Descriptor_free_
#define GxB_Desc_set_INT32 grb_calls->GxB_Desc_set_INT32_
#define GxB_Matrix_pack_CSR grb_calls->GxB_Matrix_pack_CSR_
#define GxB_Matrix_unpack_CSR grb_calls->GxB_Matrix_unpack_CSR_
#define GrB_Matrix_new grb_calls->GrB_Matrix_new_
#define GrB_Matrix_free grb_calls->GrB_Matrix_free_
#define GrB_Matrix_dup grb_calls->GrB_Matrix_dup_
#define GrB_Vector_dup grb_calls->GrB_Vector_dup_
#define GrB_Vector_free grb_calls->GrB_Vector_free_
#define GrB_Matrix_nrows grb_calls->GrB_Matrix_nrows_
#define GrB_Matrix_ncols grb_calls->GrB_Matrix_ncols_
#define GrB_Matrix_nvals grb_calls->GrB_Matrix_nvals_
#define GrB_Matrix_setElement_FP64 grb_calls->GrB_Matrix_setElement_FP64_
#define GrB_Matrix_assign grb_calls->GrB_Matrix_assign_
#define GrB_Matrix_assign_FP64 grb_calls->GrB_Matrix_assign_FP64_
#define GrB_transpose grb_calls->GrB_transpose_
#define GrB_mxm grb_calls->GrB_mxm_
#define GrB_mxv grb_calls->GrB_mxv_
#define GrB_vxm grb_calls->GrB_vxm_
#define GxB_Iterator_new grb_calls->GxB_Iterator_new_
#define GxB_Iterator_free grb_calls->GxB_Iterator_free_
#define GxB_Matrix_Iterator_attach grb_calls->GxB_Matrix_Iterator_attach_
#define GxB_Matrix_type grb_calls->GxB_Matrix_type_
#define GxB_Matrix_Option_set_INT32 grb_calls->GxB_Matrix_Option_set_INT32_
#define GxB_Matrix_Option_get_INT32 grb_calls->GxB_Matrix_Option_get_INT32_
#define GxB_Global_Option_get_INT32 grb_calls->GxB_Global_Option_get_INT32_
#define GxB_Desc_get_INT32 grb_calls->GxB_Desc_get_INT32_
#define GxB_Semiring_add grb_calls->GxB_Semiring_add_
#define GxB_Semiring_multiply grb_calls->GxB_Semiring_multiply_
#define GxB_Monoid_operator grb_calls->GxB_Monoid_operator_
#define GxB_Matrix_pack_FullR grb_calls->GxB_Matrix_pack_FullR_
#define GxB_Matrix_pack_FullC grb_calls->GxB_Matrix_pack_FullC_
#define GxB_Matrix_pack_BitmapR grb_calls->GxB_Matrix_pack_BitmapR_
#define GxB_Matrix_pack_BitmapC grb_calls->GxB_Matrix_pack_BitmapC_
#define GxB_Matrix_unpack_FullR grb_calls->GxB_Matrix_unpack_FullR_
#define GxB_Matrix_unpack_FullC grb_calls->GxB_Matrix_unpack_FullC_
#define GxB_Matrix_unpack_BitmapR grb_calls->GxB_Matrix_unpack_BitmapR_
#define GxB_Matrix_unpack_BitmapC grb_calls->GxB_Matrix_unpack_BitmapC_
#define GrB_Matrix_get_INT32 grb_calls->GrB_Matrix_get_INT32_
#define GrB_BOOL (*grb_calls->GrB_BOOL_)
#define GrB_INT8 (*grb_calls->GrB_INT8_)
#define GrB_INT16 (*grb_calls->GrB_INT16_)
#define GrB_INT32 (*grb_calls->GrB_INT32_)
#define GrB_INT64 (*grb_calls->GrB_INT64_)
#define GrB_UINT8 (*grb_calls->GrB_UINT8_)
#define GrB_UINT16 (*grb_calls->GrB_UINT16_)
#define GrB_UINT32 (*grb_calls->GrB_UINT32_)
#define GrB_UINT64 (*grb_calls->GrB_UINT64_)
#define GrB_FP32 (*grb_calls->GrB_FP32_)
#define GrB_FP64 (*grb_calls->GrB_FP64_)
#define GrB_PLUS_FP32 (*grb_calls->GrB_PLUS_FP32_)
#define GrB_PLUS_FP64 (*grb_calls->GrB_PLUS_FP64_)
#define GrB_MAX_FP32 (*grb_calls->GrB_MAX_FP32_)
#define GrB_MAX_FP64 (*grb_calls->GrB_MAX_FP64_)
#define GrB_MIN_FP32 (*grb_calls->GrB_MIN_FP32_)
#define GrB_MIN_FP64 (*grb_calls->GrB_MIN_FP64_)
#define GrB_TIMES_FP32 (*grb_calls->GrB_TIMES_FP32_)
#define GrB_TIMES_FP64 (*grb_calls->GrB_TIMES_FP64_)
#define GrB_FIRST_FP32 (*grb_calls->GrB_FIRST_FP32_)
#define GrB_FIRST_FP64 (*grb_calls->GrB_FIRST_FP64_)
#define GrB_SECOND_FP32 (*grb_calls->GrB_SECOND_FP32_)
#define GrB_SECOND_FP64 (*grb_calls->GrB_SECOND_FP64_)
#define GrB_ONEB_FP32 (*grb_calls->GrB_ONEB_FP32_)
#define GrB_ONEB_FP64 (*grb_calls->GrB_ONEB_FP64_)
#define GrB_PLUS_TIMES_SEMIRING_FP32 (*grb_calls->GrB_PLUS_TIMES_SEMIRING_FP32_)
#define GrB_PLUS_TIMES_SEMIRING_FP64 (*grb_calls->GrB_PLUS_TIMES_SEMIRING_FP64_)
#define GrB_MAX_TIMES_SEMIRING_FP32 (*grb_calls->GrB_MAX_TIMES_SEMIRING_FP32_)
#define GrB_MAX_TIMES_SEMIRING_FP64 (*grb_calls->GrB_MAX_TIMES_SEMIRING_FP64_)
#define GrB_MIN_TIMES_SEMIRING_FP32 (*grb_calls->GrB_MIN_TIMES_SEMIRING_FP32_)
#define GrB_MIN_TIMES_SEMIRING_FP64 (*grb_calls->GrB_MIN_TIMES_SEMIRING_FP64_)
#define GxB_MAX_SECOND_FP32 (*grb_calls->GxB_MAX_SECOND_FP32_)
#define GxB_MAX_SECOND_FP64 (*grb_calls->GxB_MAX_SECOND_FP64_)
#define GxB_MIN_SECOND_FP32 (*grb_calls->GxB_MIN_SECOND_FP32_)
#define GxB_MIN_SECOND_FP64 (*grb_calls->GxB_MIN_SECOND_FP64_)
#define GrB_DESC_S (*grb_calls->GrB_DESC_S_)
#define GrB_DESC_C (*grb_calls->GrB_DESC_C_)
#define GrB_DESC_SC (*grb_calls->GrB_DESC_SC_)
#define GrB_DESC_R (*grb_calls->GrB_DESC_R_)
#define GrB_DESC_RS (*grb_calls->GrB_DESC_RS_)
#define GrB_DESC_RC (*grb_calls->GrB_DESC_RC_)
#define GrB_DESC_RSC (*grb_calls->GrB_DESC_RSC_)
#define GrB_ALL (*grb_calls->GrB_ALL_)

#endif

#endif
