# Release builds pin the base by digest, which a tag cannot promise: the release job resolves the tag once
# (`docker buildx imagetools inspect python:3.13-slim-bookworm`) and passes --build-arg BASE=python@sha256:… .
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY capwatch capwatch
COPY rules rules
COPY dashboards dashboards
COPY deploy/package deploy/package
# npm fetches the library that draws the page's plots; nothing of it is in the second stage.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends npm && rm -rf /var/lib/apt/lists/*
# Its own environment, so that the second stage takes one folder and neither pip's cache nor the sources.
# An image whose page has no plots is not built at all.
RUN python -m venv /opt/capwatch \
 && CAPWATCH_PLOTS=required /opt/capwatch/bin/pip install --no-cache-dir --disable-pip-version-check '.[gpu]'

FROM ${BASE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="capwatch" \
      org.opencontainers.image.description="Capacity observability for LLM serving, from the logs you already have" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

COPY --from=build /opt/capwatch /opt/capwatch
# 65532 is the customary "nonroot"; a number, so that Kubernetes can check runAsNonRoot. The state is the only place it writes.
RUN install -d -o 65532 -g 65532 -m 0700 /var/lib/capwatch
# XDG_STATE_HOME makes /var/lib/capwatch the default state_dir of a user that is not root.
ENV PATH=/opt/capwatch/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_STATE_HOME=/var/lib
USER 65532:65532
VOLUME ["/var/lib/capwatch"]
EXPOSE 10077
# The slim image has no curl; a configuration with another port or with TLS brings a health check of its own.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:10077/-/healthy', timeout=4)"]
ENTRYPOINT ["capwatch"]
CMD ["run", "--config.file", "/etc/capwatch/capwatch.yml"]
