import { request } from 'undici'

/** Whoever knows breached passwords by the first five digits of their SHA-1 (the API of Have I Been Pwned). */
export interface RangeService {
  /** Throws when there is no answer within a second. */
  has(digest: Buffer): Promise<boolean>
}

const timeoutMs = 1_000
/** A padded answer has about 1 000 lines. */
const maxBytes = 1_048_576

/** `url` is that of the ranges: `https://api.pwnedpasswords.com/range`. It learns five of forty digits. */
export const createRangeService = (url: string): RangeService => ({
  async has(digest) {
    const hex = digest.toString('hex').toUpperCase()
    const signal = AbortSignal.timeout(timeoutMs)
    // Padded, so that the length of the answer does not tell whoever watches which range was asked for.
    const headers = { 'add-padding': 'true', 'user-agent': 'surrogate' }
    const { statusCode, body } = await request(`${url}/${hex.slice(0, 5)}`, { signal, headers })
    const text = await limited(body)
    if (statusCode !== 200) throw new Error(`the service of breached passwords answered ${statusCode}`)
    return text.split(/\r?\n/).some((line) => {
      const [suffix, count] = line.split(':')
      // Padding has the count 0.
      return suffix?.toUpperCase() === hex.slice(5) && Number(count) > 0
    })
  },
})

const limited = async (body: AsyncIterable<Buffer> & { destroy(): unknown }): Promise<string> => {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > maxBytes) {
      body.destroy()
      throw new Error('the service of breached passwords answered too much')
    }
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}
