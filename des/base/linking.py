"""Linking of compiled code: kernels that only kernels call are optimised where they are called.

Numba optimises every function with all that it calls, and makes machine code of both, for every
function that calls others; of a tree of small functions that is most of its time. An inner kernel
is linked as it is into the kernels that Python calls, which are optimised once.
"""

from typing import Any, cast

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import codegen, compiler, compiler_machinery, environment, typed_passes

# Numba declares no types for these
_registered: Any = cast(Any, compiler_machinery).register_pass(
    mutates_CFG=True, analysis_only=False
)
_environment_named: Any = environment.lookup_environment
_passes_of: Any = compiler.DefaultPassBuilder.define_nopython_pipeline
_ENVIRONMENT, _ANYWHERE = "_ZN08NumbaEnv", "linkonce_odr"


class _Library(codegen.JITCodeLibrary):
    """Code of a kernel that Python calls, with that of all it calls."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == _ANYWHERE:
                function.linkage = "internal"  # what is written out where it is called is dropped
        super()._optimize_final_module()  # type: ignore[no-untyped-call]

    def environments(self) -> list[str]:
        """Names of the environments of all functions."""
        names = [each.name for each in self._final_module.global_variables]
        return [name for name in names if name.startswith(_ENVIRONMENT)]


class _InnerLibrary(codegen.JITCodeLibrary):
    """Code of an inner kernel and of all it calls, neither optimised nor made machine code of."""

    def _optimize_final_module(self) -> None:
        """Leave the code as it is."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def reloads(self) -> list[Any]:
        """Return what has to be done before the code is used again."""
        return list(self._reload_init)


@_registered
class _Lowering(typed_passes.NativeLowering):
    """Lowering of a kernel; environments of inner kernels are those of this process."""

    _name = "lowering_of_kernels"

    def run_pass(self, state: Any) -> bool:
        _open_library(state, _Library)
        changed: bool = super().run_pass(state)  # type: ignore[no-untyped-call]
        for name in state.library.environments():
            own = _environment_named(name)
            if own is not None:  # else nothing in the code reads it
                state.targetctx.codegen().set_env(name, own)
        return changed


@_registered
class _InnerLowering(typed_passes.NativeLowering):
    """Lowering of an inner kernel, of which no machine code is made."""

    _name = "lowering_of_inner_kernels"

    def run_pass(self, state: Any) -> bool:
        _open_library(state, _InnerLibrary)
        state.flags.no_compile = True
        changed: bool = super().run_pass(state)  # type: ignore[no-untyped-call]
        known = state.cr
        name, module = known.fndesc.qualname, known.fndesc.lookup_module()
        unique = _dynfunc.make_function(module, name, name, 0, known.env, (state.library,))
        state.targetctx.insert_user_function(unique, known.fndesc, [state.library])
        state.reload_init.extend(state.library.reloads())
        state.cr = known._replace(cfunc=unique)
        return changed


def _open_library(state: Any, kind: type[Any]) -> None:
    state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
    state.library.enable_object_caching()


def _pipelines(state: Any, own: type[Any]) -> list[Any]:
    """Passes of Numba with another one that lowers."""
    manager = _passes_of(state)
    passes = [
        (own, text) if each is typed_passes.NativeLowering else (each, text)
        for each, text in manager.passes
    ]
    manager.passes[:] = passes
    manager.finalize()
    return [manager]


class KernelCompiler(compiler.CompilerBase):
    """Compiler of kernels that Python calls."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes."""
        return _pipelines(self.state, _Lowering)


class InnerCompiler(compiler.CompilerBase):
    """Compiler of kernels that only kernels call."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes."""
        return _pipelines(self.state, _InnerLowering)
