# Dockerfile - swsim in a container: docker build -t swsim . && docker run --rm -v "$PWD:/w" -w /w swsim verify plan.yaml
FROM debian:12-slim AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends \
    gcc make binutils autoconf automake pkg-config libc6-dev libyaml-dev libsqlite3-dev zlib1g-dev libgraphviz-dev librandom123-dev
COPY . /source
RUN cd /source && ./autogen.sh && mkdir -p /build && cd /build && /source/configure -q --prefix=/usr && \
    make -s -j"$(nproc)" && make -s install-strip DESTDIR=/tree

FROM debian:12-slim
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends libyaml-0-2 libsqlite3-0 zlib1g graphviz && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /tree/usr /usr
ENTRYPOINT ["swsim"]
