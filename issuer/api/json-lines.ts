import type { ServerResponse } from 'node:http'

/**
 * Answers with one line of JSON per value, as fast as the caller reads and no faster: what is in memory does not grow
 * with their number. Throws what the source throws; when the answer had begun by then, the caller of this breaks the
 * connection, so that nobody takes a part for the whole.
 */
export const sendJsonLines = async (response: ServerResponse, values: AsyncIterable<unknown>): Promise<void> => {
  for await (const value of values) {
    if (response.destroyed) return
    begin(response)
    if (!response.write(`${JSON.stringify(value)}\n`)) await drained(response)
  }
  begin(response)
  response.end()
}

// Not before there is something to send: until then a failure is answered as one.
const begin = (response: ServerResponse) => {
  if (!response.headersSent) response.setHeader('Content-Type', 'application/x-ndjson; charset=utf-8')
}

/** When there is room again, or nobody is left. */
export const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
