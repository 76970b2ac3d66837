import { createServer } from 'node:http'
import { findAsset, sendAsset, sendPage } from '../../issuer/pages/index.ts'
import { oneLine, oneLinePage, pageExamples } from '../comparisons/page-examples.ts'
import { listen, runServer } from '../harness/server.ts'

/** Every page at its name, as the issuer sends it, and what it loads; and one that is next to nothing. */
runServer(async () =>
  listen(
    createServer((request, response) => {
      const path = request.url ?? '/'
      const asset = findAsset(path)
      const example = pageExamples[path.slice(1)]
      if (asset) sendAsset(response, asset)
      else if (example) sendPage(response, 200, example('en'))
      else if (path === `/${oneLine}`) response.writeHead(200, { 'Content-Type': 'text/html' }).end(oneLinePage)
      else response.writeHead(404).end()
    }),
  ),
)
