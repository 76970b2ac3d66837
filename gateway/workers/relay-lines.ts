import type { Readable } from 'node:stream'
import type { LineWriter } from '../../platform/line-writer.ts'

const lineFeed = 10

/**
 * Writes what a worker prints, in whole lines: several processes that write to one pipe would break off each other's
 * longer ones.
 */
export const relayLines = (from: Readable, to: Pick<LineWriter, 'write'>): void => {
  let rest: Buffer[] = []
  from.on('data', (chunk: Buffer) => {
    const end = chunk.lastIndexOf(lineFeed) + 1
    if (end === 0) return void rest.push(chunk)
    to.write(Buffer.concat([...rest, chunk.subarray(0, end)]).toString())
    rest = end < chunk.length ? [chunk.subarray(end)] : []
  })
  // Half a line, of a worker that was killed.
  from.on('end', () => rest.length > 0 && to.write(`${Buffer.concat(rest).toString()}\n`))
}
