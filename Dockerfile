# Builds the program and puts it, with what it needs to run, into a small image that is not root's:
#   docker build -t cohort .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" cohort train --model lenet --epochs 1
FROM debian:12 AS build
WORKDIR /src
COPY tools/setup tools/packages.txt tools/
RUN tools/setup build
COPY . .
RUN cmake --preset release \
 && cmake --build build/release --target cohort \
 && install -s -D build/release/cohort /out/cohort

FROM debian:12-slim
COPY tools/setup tools/packages.txt /tmp/tools/
RUN /tmp/tools/setup run \
 && rm -rf /tmp/tools /var/lib/apt/lists/* \
 && useradd --create-home cohort \
 && install -d -o cohort -g cohort /work
COPY --from=build /out/cohort /usr/local/bin/cohort
USER cohort
WORKDIR /work
ENTRYPOINT ["cohort"]
CMD ["--help"]
