/** Pictures by their first bytes: what a file calls itself is not asked. */

export const maxPictureBytes = 500_000

const startsWith = (content: Buffer, bytes: readonly number[], at = 0) =>
  bytes.every((byte, index) => content[at + index] === byte)
const ascii = (text: string) => [...Buffer.from(text)]

const kinds: readonly { type: string; extension: string; is(content: Buffer): boolean }[] = [
  {
    type: 'image/png',
    extension: 'png',
    is: (content) => startsWith(content, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  },
  { type: 'image/jpeg', extension: 'jpg', is: (content) => startsWith(content, [0xff, 0xd8, 0xff]) },
  {
    type: 'image/gif',
    extension: 'gif',
    is: (content) => startsWith(content, ascii('GIF87a')) || startsWith(content, ascii('GIF89a')),
  },
  {
    type: 'image/webp',
    extension: 'webp',
    is: (content) => startsWith(content, ascii('RIFF')) && startsWith(content, ascii('WEBP'), 8),
  },
  // It may hold scripts. In `<img>` they do not run, and by itself it is a document that may do nothing.
  {
    type: 'image/svg+xml',
    extension: 'svg',
    is: (content) => /^\ufeff?(?:\s|<\?xml[^>]*\?>|<!--[\s\S]*?-->)*<svg[\s>]/.test(content.toString('utf8', 0, 4_096)),
  },
]

/** Undefined when it is none that pages may show. */
export const pictureOf = (content: Buffer): { type: string; extension: string } | undefined => {
  const found = kinds.find(({ is }) => is(content))
  return found && { type: found.type, extension: found.extension }
}
