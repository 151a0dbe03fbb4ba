# The course in a container, as an ordinary user, reached from this machine alone:
#
#   docker build -t sluice . && docker run --rm -p 127.0.0.1:8888:8888 -v sluice:/home/learner sluice
#
# Open the address that it shows. The volume `sluice` keeps notebooks and progress.
# A JupyterHub is in it too: course/classroom/organising.md says how a class is in one.

FROM python:3.12-slim AS wheel
WORKDIR /checkout
COPY . .
RUN pip install --no-cache-dir "setuptools>=77" && python -m course.author.distribution --out /wheel

FROM python:3.12-slim
# What changes seldom comes first: a build after a change of the course takes this layer as it is.
# Spark comes as a source archive alone: it is built with the setuptools that is there, not with one fetched unchecked.
COPY course/classroom/requirements.txt /
RUN pip install --no-cache-dir "setuptools>=77" \
 && pip install --no-cache-dir --no-build-isolation --require-hashes -r requirements.txt
COPY --from=wheel /wheel/*.whl /wheel/
RUN pip install --no-cache-dir --no-deps --no-index /wheel/*.whl && rm -r /wheel
RUN useradd --create-home learner
USER learner
WORKDIR /home/learner
EXPOSE 8888
# Within a container, 127.0.0.1 is the container: whether anybody else reaches it is said with `docker run -p`.
CMD ["sluice", "lab", "--no-browser", "--host", "0.0.0.0"]
