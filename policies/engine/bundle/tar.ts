/**
 * Reads and writes the ustar archives that OPA bundles are (POSIX.1-1988, and the `path` records of POSIX.1-2001). Only
 * regular files: names are relative with `/`, never leave the archive, and occur once; everything else is an error.
 * Nothing touches the disk.
 */
const block = 512

class TarError extends Error {
  override readonly name = 'TarError'
}

export const readTar = (archive: Uint8Array): Map<string, Uint8Array<ArrayBuffer>> => {
  const files = new Map<string, Uint8Array<ArrayBuffer>>()
  const bytes = Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength)
  let longName: string | undefined
  for (let at = 0; at + block <= bytes.length; ) {
    const header = bytes.subarray(at, at + block)
    if (header.every((byte) => byte === 0)) return files
    const size = octal(header, 124, 12)
    if (checksum(header) !== octal(header, 148, 8)) throw new TarError('the archive is damaged (checksum)')
    const start = at + block
    if (start + size > bytes.length) throw new TarError('the archive is cut off')
    const content = bytes.subarray(start, start + size)
    at = start + Math.ceil(size / block) * block

    const type = String.fromCharCode(header.readUInt8(156))
    if (type === 'x') longName = pathRecord(content)
    else if (type === '0' || type === '\0') {
      const name = fileName(longName ?? headerName(header))
      if (files.has(name)) throw new TarError(`the archive holds ${name} twice`)
      files.set(name, new Uint8Array(content))
      longName = undefined
    } else if (type === '5') longName = undefined
    else throw new TarError('the archive holds something that is neither a file nor a folder')
  }
  throw new TarError('the archive is cut off')
}

/**
 * The same files always give the same bytes: sorted, no owner, no time. `root` stands before every name; OPA wants `/`
 * there in bundles.
 */
export const writeTar = (files: ReadonlyMap<string, Uint8Array>, { root = '' } = {}): Uint8Array => {
  const parts: Uint8Array[] = []
  for (const [name, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const header = Buffer.alloc(block)
    const [prefix, rest] = splitName(root + fileName(name))
    header.write(rest, 0)
    header.write('0000644\0' + '0000000\0' + '0000000\0', 100)
    header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124)
    header.write('00000000000\0', 136)
    header.write('0ustar\x0000', 156)
    header.copyWithin(257, 157, 165)
    header.fill(0, 157, 165)
    header.write(prefix, 345)
    header.write(`${checksum(header).toString(8).padStart(6, '0')}\0 `, 148)
    parts.push(header, content, Buffer.alloc((block - (content.length % block)) % block))
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * block)])
}

const text = (bytes: Buffer, start: number, length: number): string => {
  const field = bytes.subarray(start, start + length)
  const end = field.indexOf(0)
  return field.toString('utf8', 0, end === -1 ? length : end)
}

const octal = (header: Buffer, start: number, length: number): number => {
  const digits = text(header, start, length).trim()
  if (!/^[0-7]{1,11}$/.test(digits)) throw new TarError('the archive is damaged (number)')
  return Number.parseInt(digits, 8)
}

/** The sum of all bytes, with the checksum itself taken as eight spaces. */
const checksum = (header: Buffer): number => {
  let sum = 8 * 32
  for (const [at, byte] of header.entries()) if (at < 148 || at >= 156) sum += byte
  return sum
}

const headerName = (header: Buffer): string => {
  const prefix = text(header, 257, 5) === 'ustar' ? text(header, 345, 155) : ''
  return prefix === '' ? text(header, 0, 100) : `${prefix}/${text(header, 0, 100)}`
}

/** Records are `<length> <key>=<value>\n`; the length counts the whole record in bytes. */
const pathRecord = (content: Buffer): string | undefined => {
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at)
    const length = Number(content.toString('utf8', at, space))
    if (space === -1 || !Number.isInteger(length) || length <= 0) throw new TarError('the archive is damaged (record)')
    const record = content.toString('utf8', space + 1, at + length - 1)
    if (record.startsWith('path=')) return record.slice('path='.length)
    at += length
  }
  return undefined
}

const fileName = (name: string): string => {
  const relative = name.replace(/^\/+/, '').replace(/^(\.\/)+/, '')
  const parts = relative.split('/')
  if (/[\\\x00-\x1f]/.test(relative) || parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw new TarError(`the archive holds a file with the unsafe name ${JSON.stringify(name)}`)
  }
  return relative
}

const splitName = (name: string): [prefix: string, rest: string] => {
  if (Buffer.byteLength(name) <= 100) return ['', name]
  for (let slash = name.indexOf('/', 1); slash !== -1; slash = name.indexOf('/', slash + 1)) {
    const [prefix, rest] = [name.slice(0, slash), name.slice(slash + 1)]
    if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(rest) <= 100) return [prefix, rest]
  }
  throw new TarError(`the name ${name} is too long for the archive`)
}
