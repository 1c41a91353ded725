# Runs the demo, or any other command: docker run loginfer loginfer --help
FROM python:3.12-slim
RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /loginfer
COPY . .
RUN make install
ENV PATH=/loginfer/.venv/bin:$PATH
CMD ["make", "demo"]
