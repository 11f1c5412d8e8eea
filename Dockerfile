# The worker, and every other command: docker run tailbudget --help
FROM python:3.12-slim AS build

WORKDIR /src
RUN python -m venv /opt/tailbudget
COPY pyproject.toml README.md ./
COPY schemas ./schemas
COPY models ./models
COPY sinks ./sinks
COPY streams ./streams
RUN /opt/tailbudget/bin/pip install --no-cache-dir .

FROM python:3.12-slim

# No home, no shell, no rights: it reads its settings and talks to the network.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin tailbudget \
    && install --directory --owner 10001 --group 10001 /var/lib/tailbudget /etc/tailbudget
COPY --from=build /opt/tailbudget /opt/tailbudget

ENV PATH=/opt/tailbudget/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TAILBUDGET_DATA_DIR=/var/lib/tailbudget
WORKDIR /var/lib/tailbudget
USER 10001:10001
EXPOSE 6066
ENTRYPOINT ["tailbudget"]
CMD ["worker"]
