"""Two instructions of the processor that Python has no name for. LLVM writes others in their place where a processor
lacks them, so the answers are the same everywhere.
"""
# mypy: disable-error-code="no-untyped-call,no-untyped-def,misc"
# numba and llvmlite have no types.

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_BYTE_POINTER = ir.IntType(8).as_pointer()
_INT32 = ir.IntType(32)


def _trailing_zeros(_typing, word):
    """The number of zero bits below the lowest one bit of a 64-bit word that is not 0."""

    def generate(_context, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def _prefetch(_typing, array, index):
    """Begin to fetch item `index` of a one-dimensional array into the cache; nothing else happens."""

    def generate(context, builder, signature, arguments):
        items = context.make_array(signature.args[0])(context, builder, arguments[0])
        item = builder.bitcast(builder.gep(items.data, [arguments[1]]), _BYTE_POINTER)
        form = ir.FunctionType(ir.VoidType(), [_BYTE_POINTER, _INT32, _INT32, _INT32])
        function = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        # For reading (0), into every level of the cache (3), data (1).
        builder.call(function, [item, *(ir.Constant(_INT32, number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


# Typed as what kernels see: without the first parameter, which is numba's.
trailing_zeros: Any = intrinsic(_trailing_zeros)
prefetch: Any = intrinsic(_prefetch)
