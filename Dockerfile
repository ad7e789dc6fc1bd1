# One image for the command line, the workers and beat; docker-compose.yml says who runs what.
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src

# The lock holds the tools of `make test` too. Every file of it is checked against its hashes here;
# below, pip takes from these files alone what the project itself needs, and leaves the tools.
COPY requirements.lock ./
RUN pip download --quiet --require-hashes --only-binary :all: \
    --requirement requirements.lock --dest /wheels

COPY pyproject.toml README.md LICENSE ./
COPY pipeline pipeline
COPY db db
COPY workers workers
COPY cli cli
RUN python -m venv --without-pip /opt/recallwatch \
    && pip --python /opt/recallwatch/bin/python install --quiet --no-index --find-links /wheels .

FROM python:3.13-slim
RUN useradd --create-home --user-group --uid 10001 recallwatch \
    && install --directory --owner recallwatch --group recallwatch /var/lib/recallwatch
# Owned by root: the program cannot change itself.
COPY --from=build /opt/recallwatch /opt/recallwatch
ENV PATH=/opt/recallwatch/bin:$PATH PYTHONUNBUFFERED=1
USER recallwatch
WORKDIR /home/recallwatch
CMD ["recallwatch", "--help"]
