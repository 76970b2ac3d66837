/**
 * All of a body, unless it is longer than `maxBytes`: then `tooLarge` is thrown and the rest is not read. That ends the
 * connection, as leaving any stream early does, but for a request's own `iterator({ destroyOnReturn: false })`.
 */
export const readWhole = async (
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
