# The workflow and all that it runs on (docs/container.md).
#   docker build -t convs2s .                            for CPUs
#   docker build -t convs2s --build-arg TORCH=cuda .     for GPUs of NVIDIA too
# The digest is that of python:3.11.16-slim; docs/container.md says how to renew it.
FROM python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7

ARG TORCH=cpu

RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ libc6-dev make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/convs2s
COPY Makefile pyproject.toml setup.py constraints.txt README.md LICENSE ./
COPY src src
RUN PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 make .venv/.installed TORCH=$TORCH EXTRAS=workflow

COPY Snakefile config.yaml ./
COPY config config
COPY envs envs
COPY profiles profiles
COPY rules rules
COPY schemas schemas
COPY workflow workflow

# Whoever runs the image under an id of their own has no home there, and Snakemake keeps a cache in it.
ENV HOME=/tmp PATH=/opt/convs2s/.venv/bin:$PATH
CMD ["convs2s", "--help"]
