# The coordinator, as `docker-compose.yml` runs it. The build fetches packages; the image needs no network but its store.

# The tests hold on Node 20 and later. 20 itself gets no more security fixes, so the image carries a line that does.
ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-slim AS build
WORKDIR /src
COPY . .
RUN npm run --silent bootstrap
# Once more, without the tools of the build. The lock file decides the versions, and all of them were fetched just now.
RUN rm -rf node_modules packages/*/node_modules packages/*/test packages/*/src \
  && npx --yes "$(node -p 'require("./package.json").packageManager.split("+")[0]')" install \
    --prod --frozen-lockfile --offline --filter '@callnumber/coordinator...'

FROM node:${NODE_VERSION}-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /src/node_modules ./node_modules
COPY --from=build /src/packages ./packages
# Nothing in the image belongs to this user: it runs as well with a read-only file system.
USER node
EXPOSE 7300
# The image has no curl, and needs none.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.CALLNUMBER_PORT || 7300}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/packages/coordinator/bin/callnumber.js"]
CMD ["serve"]
