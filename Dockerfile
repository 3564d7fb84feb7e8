# Everything in one image: docker build -t reprise . && docker run --rm -it --gpus all -v "$PWD/work:/reprise/work" \
#     -v "$PWD/results:/reprise/results" reprise bash         and, for your own data, -v "$PWD/data:/reprise/data"
# The steps are those of .ci/run; docs/how-to/slurm-and-containers.md lists the builds of PyTorch.
FROM debian:12-slim
RUN apt-get update -qq && \
    apt-get install -y -qq --no-install-recommends make git python3 python3-venv >/dev/null
WORKDIR /reprise
COPY . .
RUN make env
ENV PATH=/reprise/.venv/bin:$PATH
CMD ["reprise", "--help"]
