import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** RFC 9113 §6. */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const
export const flags = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const
/** RFC 9113 §6.5.2. */
export const settingIds = { headerTableSize: 1, enablePush: 2, initialWindowSize: 4, enableConnectProtocol: 8 } as const
/** RFC 9113 §7. */
export const errorCodes = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  cancel: 8,
  enhanceYourCalm: 11,
} as const

export interface ReadFrame {
  type: number
  flags: number
  stream: number
  payload: Buffer
}

/** What became of a stream. */
export interface StreamOutcome {
  /** Of the final answer; undefined: there was none. */
  status: number | undefined
  body: string
  /** Error code of a RST_STREAM, or of the GOAWAY or end of the connection (as 'closed') that took it along. */
  reset: number | 'closed' | undefined
  /** Whether the answer was ended by END_STREAM. */
  ended: boolean
}

export type Field = readonly [name: string, value: string]

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}

/** One frame, whatever its type, flags and payload: nothing is checked. */
export const frame = (type: number, flag: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flag, 4)
  head.writeUInt32BE(stream >>> 0, 5)
  return Buffer.concat([head, payload])
}

/** RFC 7541 §5.1. */
const integer = (value: number, prefixBits: number, pattern: number): Buffer => {
  const most = 2 ** prefixBits - 1
  if (value < most) return Buffer.from([pattern | value])
  const bytes = [pattern | most]
  let left = value - most
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128)
  return Buffer.from([...bytes, left])
}

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([integer(bytes.length, 7, 0), bytes])
}

/** Header compression (RFC 7541 §6) without any: each field as a literal. `indexed` refers to the tables. */
export const hpack = {
  /** Not to be indexed, with a new name; bytes as they are. */
  literal: (name: string, value: string) => Buffer.concat([Buffer.from([0x00]), text(name), text(value)]),
  /** The same, put into the dynamic table. */
  remembered: (name: string, value: string) => Buffer.concat([Buffer.from([0x40]), text(name), text(value)]),
  /** A whole field of the tables; 62 is the youngest of the dynamic one. */
  indexed: (index: number) => integer(index, 7, 0x80),
  tableSize: (bytes: number) => integer(bytes, 5, 0x20),
  block: (fields: readonly Field[]) => Buffer.concat(fields.map(([name, value]) => hpack.literal(name, value))),
}

export const frames = {
  settings: (...pairs: readonly (readonly [id: number, value: number])[]) =>
    frame(
      frameTypes.settings,
      0,
      0,
      Buffer.concat(pairs.map(([id, value]) => Buffer.concat([Buffer.from([0, id]), uint32(value)]))),
    ),
  headers: (stream: number, block: Buffer, { end = true, endHeaders = true } = {}) =>
    frame(frameTypes.headers, (end ? flags.endStream : 0) | (endHeaders ? flags.endHeaders : 0), stream, block),
  continuation: (stream: number, block: Buffer, { endHeaders = false } = {}) =>
    frame(frameTypes.continuation, endHeaders ? flags.endHeaders : 0, stream, block),
  data: (stream: number, body: string | Buffer, { end = true } = {}) =>
    frame(frameTypes.data, end ? flags.endStream : 0, stream, Buffer.from(body as string, 'latin1')),
  rstStream: (stream: number, code: number = errorCodes.cancel) => frame(frameTypes.rstStream, 0, stream, uint32(code)),
  windowUpdate: (stream: number, bytes: number) => frame(frameTypes.windowUpdate, 0, stream, uint32(bytes)),
  ping: (data = 'pingpong') => frame(frameTypes.ping, 0, 0, Buffer.from(data)),
  priority: (stream: number, dependsOn: number) =>
    frame(frameTypes.priority, 0, stream, Buffer.concat([uint32(dependsOn), Buffer.from([15])])),
}

/** Indexes 8 to 14 of the static table (RFC 7541 appendix A). */
const staticStatuses = [200, 204, 206, 304, 400, 404, 500]

/** Codes of the digits in RFC 7541 appendix B. */
const huffmanDigits = new Map(
  [...'0123456789'].map((digit, index) => [
    index < 3 ? index.toString(2).padStart(5, '0') : (0x16 + index).toString(2).padStart(6, '0'),
    digit,
  ]),
)

const readHuffmanDigits = (bytes: Buffer): string => {
  let digits = ''
  let code = ''
  for (const bit of [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')) {
    code += bit
    const digit = huffmanDigits.get(code)
    if (digit === undefined) continue
    digits += digit
    code = ''
  }
  return digits
}

/** The first field of an answer is its status (RFC 9113 §8.3). The rest of the block is not read. */
const statusOf = (block: Buffer): number | undefined => {
  let at = 0
  while ((block[at]! & 0xe0) === 0x20) at++
  const first = block[at]!
  if (first & 0x80) return staticStatuses[(first & 0x7f) - 8]
  if ((first & 0x0f) < 8) return undefined
  const length = block[at + 1]! & 0x7f
  const bytes = block.subarray(at + 2, at + 2 + length)
  return Number(block[at + 1]! & 0x80 ? readHuffmanDigits(bytes) : bytes.toString('latin1'))
}

export interface Http2FramesOptions {
  port: number
  /** Of the connection, sent with the preface. The table of header fields has no room in any case. */
  settings?: readonly (readonly [id: number, value: number])[]
  /** Gives back the window for what was read. Default true. */
  readsOn?: boolean
  /** Without TLS: prior knowledge. Default false. */
  clearText?: boolean
  servername?: string
}

export type Http2Frames = Awaited<ReturnType<typeof openHttp2Frames>>

/**
 * A client of HTTP/2 that says what no library lets one say: frames as bytes, header fields as they are. It answers
 * SETTINGS and PING, and keeps every frame that it gets.
 */
export const openHttp2Frames = async (options: Http2FramesOptions) => {
  const { port, settings = [], readsOn = true, clearText = false, servername = 'api.test' } = options
  const address = { port, host: '127.0.0.1' }
  const socket = clearText
    ? connectTcp(address)
    : connectTls({ ...address, servername, ALPNProtocols: ['h2'], rejectUnauthorized: false })
  const received: ReadFrame[] = []
  let closed = false
  const waiting = new Set<() => void>()
  const wake = () => {
    for (const look of waiting) look()
  }
  let nextStream = 1
  let bytes: Buffer = Buffer.alloc(0)
  const send = (...buffers: Buffer[]) => {
    if (!closed && socket.writable) socket.write(Buffer.concat(buffers))
  }
  const answer = ({ type, flags: flag, stream, payload }: ReadFrame) => {
    if (type === frameTypes.settings && !(flag & flags.ack)) send(frame(frameTypes.settings, flags.ack, 0))
    if (type === frameTypes.ping && !(flag & flags.ack)) send(frame(frameTypes.ping, flags.ack, 0, payload))
    if (type === frameTypes.data && readsOn && payload.length > 0) {
      send(frames.windowUpdate(0, payload.length))
      if (!(flag & flags.endStream)) send(frames.windowUpdate(stream, payload.length))
    }
  }
  socket.on('error', () => {})
  socket.on('close', () => {
    closed = true
    wake()
  })
  socket.on('data', (chunk) => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
    for (;;) {
      if (bytes.length < 9) return wake()
      const length = bytes.readUIntBE(0, 3)
      if (bytes.length < 9 + length) return wake()
      const read: ReadFrame = {
        type: bytes[3]!,
        flags: bytes[4]!,
        stream: bytes.readUInt32BE(5) & 0x7fffffff,
        payload: Buffer.from(bytes.subarray(9, 9 + length)),
      }
      bytes = bytes.subarray(9 + length)
      received.push(read)
      answer(read)
    }
  })
  await new Promise<void>((resolve, reject) => {
    socket.once(clearText ? 'connect' : 'secureConnect', resolve)
    socket.once('error', reject)
  })
  send(
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frames.settings([settingIds.headerTableSize, 0], [settingIds.enablePush, 0], ...settings),
  )

  const goaway = (): number | undefined =>
    received.find(({ type }) => type === frameTypes.goaway)?.payload.readUInt32BE(4)

  const soFar = (stream: number): StreamOutcome => {
    const own = received.filter((one) => one.stream === stream)
    const heads = own.filter(({ type }) => type === frameTypes.headers).map(({ payload }) => statusOf(payload))
    const reset = own.find(({ type }) => type === frameTypes.rstStream)?.payload.readUInt32BE(0)
    return {
      status: heads.find((status) => status !== undefined && status >= 200),
      body: own
        .filter(({ type }) => type === frameTypes.data)
        .map(({ payload }) => payload.toString('latin1'))
        .join(''),
      reset: reset ?? (closed ? (goaway() ?? 'closed') : undefined),
      ended: own.some(
        ({ type, flags: flag }) =>
          (type === frameTypes.data || type === frameTypes.headers) && (flag & flags.endStream) !== 0,
      ),
    }
  }

  return {
    /** Every frame that came, in order. */
    received,
    send,
    get closed() {
      return closed
    },
    /** The error code of a GOAWAY; undefined: there was none. */
    get goaway() {
      return goaway()
    },
    /** The number of a stream that no request has yet. */
    newStream() {
      const stream = nextStream
      nextStream += 2
      return stream
    },
    /** Sends these fields, which may be anything, and the body in one frame. Answers the number of the stream. */
    request(
      fields: readonly Field[],
      { body, trailers, end = true }: { body?: string; trailers?: readonly Field[]; end?: boolean } = {},
    ): number {
      const stream = this.newStream()
      const last = end && trailers === undefined
      send(frames.headers(stream, hpack.block(fields), { end: last && body === undefined }))
      if (body !== undefined) send(frames.data(stream, body, { end: last }))
      if (trailers !== undefined) send(frames.headers(stream, hpack.block(trailers), { end }))
      return stream
    },
    soFar,
    /** Waits until the stream was answered to its end, or reset, or the connection is gone. */
    outcome: (stream: number): Promise<StreamOutcome> =>
      new Promise((resolve) => {
        const look = () => {
          const outcome = soFar(stream)
          if (!outcome.ended && outcome.reset === undefined) return
          waiting.delete(look)
          resolve(outcome)
        }
        waiting.add(look)
        look()
      }),
    /** Stops reading from the socket; the window of TCP fills. */
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close: () =>
      new Promise<void>((resolve) => {
        if (closed) return resolve()
        socket.once('close', () => resolve())
        socket.destroy()
      }),
  }
}

/** The pseudo-header fields of a good request. */
export const requestFields = (
  path: string,
  { method = 'GET', authority = 'api.test' }: { method?: string; authority?: string } = {},
): Field[] => [
  [':method', method],
  [':scheme', 'https'],
  [':authority', authority],
  [':path', path],
]
