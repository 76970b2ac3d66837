/** Just enough of RFC 6455 §5.2 to know where frames end: a frame of our own may only stand between two others. */
export interface FrameBoundaries {
  /** Follows `chunk`; with `stopAtBoundary` no further than the first boundary. Returns the number of octets taken. */
  follow(chunk: Uint8Array, stopAtBoundary?: boolean): number
  /** Whether what was followed so far ends with a whole frame. */
  readonly atBoundary: boolean
}

export const followFrames = (): FrameBoundaries => {
  /** Octets of the header so far; the longest has 2 + 8 + 4 of them. */
  const header = new Uint8Array(14)
  let headerLength = 0
  let payloadLeft = 0

  /** Of the whole header as far as it is known; 2 until its second octet says more. */
  const headerSize = (): number => {
    if (headerLength < 2) return 2
    const length = header[1]! & 0x7f
    return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + (header[1]! & 0x80 ? 4 : 0)
  }
  const payloadSize = (): number => {
    const short = header[1]! & 0x7f
    if (short < 126) return short
    let size = 0
    for (let index = 2; index < (short === 126 ? 4 : 10); index++) size = size * 256 + header[index]!
    return size
  }

  return {
    follow(chunk, stopAtBoundary = false) {
      let at = 0
      while (at < chunk.length) {
        if (payloadLeft > 0) {
          const taken = Math.min(payloadLeft, chunk.length - at)
          payloadLeft -= taken
          at += taken
        } else {
          header[headerLength++] = chunk[at++]!
          if (headerLength < 2 || headerLength < headerSize()) continue
          payloadLeft = payloadSize()
          headerLength = 0
        }
        if (stopAtBoundary && payloadLeft === 0 && headerLength === 0) return at
      }
      return at
    },
    get atBoundary() {
      return payloadLeft === 0 && headerLength === 0
    },
  }
}

/** Why we end a WebSocket: a code of RFC 6455 §7.4.1 or IANA's registry, and a few words. */
export interface CloseReason {
  code: 1001 | 1008 | 1013
  /** At most 123 octets. */
  reason: string
}

/** RFC 6455 §5.5.1. A client masks its frames; the key hides nothing here, so zeros do. */
export const closeFrame = ({ code, reason }: CloseReason, { masked }: { masked: boolean }): Buffer => {
  const text = Buffer.from(reason)
  const mask = masked ? [0, 0, 0, 0] : []
  const length = 2 + text.length
  return Buffer.concat([Buffer.from([0x88, (masked ? 0x80 : 0) | length, ...mask, code >> 8, code & 0xff]), text])
}
