"""How many kernels torch.compile would make for a GPU, by its own schedule, without making them."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._guards import detect_fake_mode
from torch._inductor import compile_fx, config, ir, scheduler
from torch._inductor.debug import DebugContext
from torch._inductor.fx_passes import joint_graph
from torch._inductor.fx_passes.post_grad import view_to_reshape
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V

compile_for_real = torch.compile


def count_kernels(patch: pytest.MonkeyPatch) -> list[int]:
    """Have torch.compile count; return the list of the kernels of each graph that it compiles.

    A break in what it is to compile as a whole is an error.
    """
    kernels: list[int] = []
    # Its kernels are scheduled, and never made: that needs no Triton.
    patch.setattr(scheduler, "has_triton", lambda: True)
    # Its patterns compute on a real GPU.
    patch.setattr(joint_graph, "lazy_init", lambda *_: None)

    def compiled(
        function: Callable[..., Any], *, dynamic: bool, options: Mapping[str, object]
    ) -> Callable[..., Any]:
        asked = {"joint_graph_constant_folding": False, **options}

        def count(graph: torch.fx.GraphModule, inputs: list[Any], **given: Any) -> Any:
            with config.patch(asked):
                kernels.append(
                    _scheduled(graph, inputs, bool(given.get("is_inference")))
                )
            return make_boxed_func(graph.forward)

        def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
            with config.patch(asked):
                return compile_fx.compile_fx(graph, inputs, inner_compile=count)

        made: Callable[..., Any] = compile_for_real(
            function, dynamic=dynamic, fullgraph=True, backend=backend
        )
        return made

    patch.setattr(torch, "compile", compiled)
    return kernels


def _scheduled(
    graph: torch.fx.GraphModule, inputs: list[Any], is_inference: bool
) -> int:
    """Return the number of kernels and library calls of a graph's schedule."""
    mode = detect_fake_mode(inputs)
    assert mode is not None
    debug = DebugContext()
    with V.set_fake_mode(mode), V.set_debug_handler(debug):
        compile_fx.record_original_output_strides(graph)
        view_to_reshape(graph)
        compile_fx._recursive_post_grad_passes(graph, is_inference)
        lowering = GraphLowering(graph, example_inputs=inputs, shape_env=mode.shape_env)
        with V.set_graph_handler(lowering), debug:
            lowering.run(*inputs)
            lowering.init_wrapper_code()
            lowering._update_scheduler()
    nodes = lowering.scheduler.nodes
    return sum(
        type(node).__name__ != "NopKernelSchedulerNode"
        and not isinstance(node.node, ir.MultiOutput)
        for node in nodes
    )
