# EastWest on CPUs: docker build -t eastwest . && docker run --rm eastwest decide --network east_central_west
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends gcc make \
    && rm -rf /var/lib/apt/lists/*
# PyTorch's own index has the wheel for CPUs; PyPI's brings several GB of CUDA libraries.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /opt/eastwest
COPY . .
RUN PIP_EXTRA_INDEX_URL=${TORCH_INDEX} python requirements/install.py .venv train.lock
# Extender and node agent ask the API server by the client of Kubernetes.
RUN .venv/bin/uv pip install --python .venv --no-build-isolation --constraints requirements/test.lock \
    --excludes requirements/excluded.txt --editable '.[k8s]'
# Compiled code and runs are the user's: mount a folder on /work to keep both.
# User and group are numbers: of a name a kubelet cannot tell that it is not root.
RUN groupadd --gid 10001 eastwest && useradd --uid 10001 --gid 10001 --create-home eastwest \
    && mkdir /work && chown 10001:10001 /work
USER 10001:10001
ENV PATH=/opt/eastwest/.venv/bin:$PATH OMP_NUM_THREADS=1 MPLBACKEND=Agg
WORKDIR /work
ENTRYPOINT ["eastwest"]
CMD ["--help"]
