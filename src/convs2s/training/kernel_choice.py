"""Which kernel a training computes its products by."""

import torch

from convs2s.errors import UserError
from convs2s.files.text import read_json, write_json
from convs2s.models.kernels import matmul
from convs2s.models.kernels.choice import fastest_kernel, products_of
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.network import Network
from convs2s.training.job import TrainingJob
from convs2s.training.log import log
from convs2s.training.state_folder import StateFolder
from convs2s.training.workers import Workers


def choose_kernel(
    job: TrainingJob, network: Network, folder: StateFolder, device: str, workers: Workers
) -> None:
    """Have this process compute products as the training's first worker says.

    Kernels round differently, so a training goes on with the one that it began with, wherever it
    goes on.
    """
    names = matmul.kernels()
    number = names.index(_kernel(job, network, folder, device)) if workers.is_first else 0
    matmul.use(names[int(workers.totals([float(number)])[0])])


def _kernel(job: TrainingJob, network: Network, folder: StateFolder, device: str) -> Kernel:
    if torch.device(device).type != "cpu" or job.recipe.precision != "fp32":
        return "blas"  # there is but one
    if not folder.kernels.is_file():
        write_json(folder.kernels, {"products": _wanted(job, network)})
    begun = read_json(folder.kernels)
    for kernel in matmul.kernels():
        if begun == {"products": kernel}:
            return kernel
    raise UserError(
        f"{folder.kernels}: says {begun}, which this machine has not: remove it, and the training "
        "goes on with another kernel, which rounds differently"
    )


def _wanted(job: TrainingJob, network: Network) -> Kernel:
    if job.products != "auto":
        if job.products not in matmul.kernels():
            raise UserError(
                f"products: {job.products}: this machine has {', '.join(matmul.kernels())} alone: "
                "state one of these, or auto"
            )
        return job.products
    try:
        return fastest_kernel(products_of(network))
    except UserError as error:
        log(f"{error}; products are computed by blas, unmeasured")
        return "blas"
