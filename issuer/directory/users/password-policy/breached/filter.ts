import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { StartupError } from '../../../../../platform/startup-error.ts'

/**
 * A Bloom filter of SHA-1 digests in a file: whatever was put in is found, and of the rest only as many as was asked
 * for. A sorted table of the digests would be exact and eight times the size; a binary fuse filter a fifth smaller and
 * four times the code. It is read where it is asked, so it takes no memory of the process.
 *
 * Header, big-endian, 8 bytes each: magic, number of bits, number of entries, bits for each entry. Then the bits.
 */
const magic = 'SRGTBRP1'
const headerBytes = 32

export interface FilterSize {
  bits: number
  /** Bits that each entry sets. */
  hashes: number
}

/** As small as the rate of false positives allows. */
export const filterSize = (entries: number, falsePositives: number): FilterSize => {
  const perEntry = -Math.log2(falsePositives) / Math.LN2
  const bits = Math.max(64, Math.ceil((entries * perEntry) / 8) * 8)
  return { bits, hashes: Math.max(1, Math.round(perEntry * Math.LN2)) }
}

/** A digest is as good as random, so its own bytes say where its bits are (Kirsch and Mitzenmacher, 2006). */
const placesOf = (digest: Buffer, { bits, hashes }: FilterSize): number[] => {
  const first = digest.readUIntBE(0, 6)
  // Below 2^53 also after 64 steps.
  const step = 2 * digest.readUIntBE(6, 5) + 1
  return Array.from({ length: hashes }, (_, index) => (first + index * step) % bits)
}

export const sha1 = (text: string): Buffer => createHash('sha1').update(text).digest()

export interface FilterBuilder {
  add(digest: Buffer): void
  /** The file. */
  pieces(): Buffer[]
}

export const buildFilter = (entries: number, falsePositives: number): FilterBuilder => {
  const size = filterSize(entries, falsePositives)
  const bytes = Buffer.alloc(size.bits / 8)
  const header = Buffer.alloc(headerBytes)
  header.write(magic, 'latin1')
  header.writeBigUInt64BE(BigInt(size.bits), 8)
  header.writeBigUInt64BE(BigInt(entries), 16)
  header.writeBigUInt64BE(BigInt(size.hashes), 24)
  return {
    add(digest) {
      for (const place of placesOf(digest, size)) {
        const index = Math.floor(place / 8)
        bytes[index] = bytes[index]! | (1 << (place % 8))
      }
    },
    pieces: () => [header, bytes],
  }
}

export interface BreachFilter {
  entries: number
  has(digest: Buffer): Promise<boolean>
  close(): Promise<void>
}

const unreadable = (path: string, cause?: unknown) =>
  new StartupError(`BREACHED_PASSWORDS_FILE: ${path} is not a filter of breached passwords.`, {
    hint: 'Make one with "surrogate passwords build-filter".',
    ...(cause === undefined ? {} : { cause }),
  })

/** Throws `StartupError` for anything that is not a whole filter. */
export const openFilter = async (path: string): Promise<BreachFilter> => {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    throw unreadable(path, error)
  }
  try {
    const { bits, hashes, entries } = await readHeader(file, path)
    return {
      entries,
      async has(digest) {
        const byte = Buffer.alloc(1)
        for (const place of placesOf(digest, { bits, hashes })) {
          const { bytesRead } = await file.read(byte, 0, 1, headerBytes + Math.floor(place / 8))
          if (bytesRead !== 1) throw new Error('the filter of breached passwords has become shorter')
          if ((byte[0]! & (1 << (place % 8))) === 0) return false
        }
        return true
      },
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error instanceof StartupError ? error : unreadable(path, error)
  }
}

const readHeader = async (file: FileHandle, path: string): Promise<FilterSize & { entries: number }> => {
  const header = Buffer.alloc(headerBytes)
  const { bytesRead } = await file.read(header, 0, headerBytes, 0)
  if (bytesRead !== headerBytes || header.toString('latin1', 0, 8) !== magic) throw unreadable(path)
  const [bits, entries, hashes] = [8, 16, 24].map((offset) => Number(header.readBigUInt64BE(offset))) as [
    number,
    number,
    number,
  ]
  const { size } = await file.stat()
  if (size !== headerBytes + bits / 8 || hashes < 1 || hashes > 64) throw unreadable(path)
  return { bits, entries, hashes }
}
