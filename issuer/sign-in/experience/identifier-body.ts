import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import { type Identifier, readIdentifier } from '../../interaction/identifier.ts'

const value = z.string().trim().min(1).max(256)

export const anyIdentifier = z.object({ type: z.enum(['username', 'email', 'phone']), value })
export const addressIdentifier = z.object({ type: z.enum(['email', 'phone']), value })
export const emailIdentifier = z.object({ type: z.literal('email'), value })

type IdentifierBody = z.output<typeof anyIdentifier>

/** What cannot be of its type is nobody's, and fails, and counts, like any other that is nobody's. */
export const identifierOf = ({ type, value: text }: IdentifierBody): Identifier => {
  const read = readIdentifier(text)
  if (read?.type === type) return read
  return { type, canonical: text.normalize('NFKC').toLowerCase(), spellings: [text] }
}

/** One that a message can be sent to. Throws 400. */
export const addressOf = (body: z.output<typeof addressIdentifier>): Identifier => {
  const read = readIdentifier(body.value)
  if (read?.type === body.type) return read
  throw problem('guard.invalid_input', { detail: `identifier.value: must be of type ${body.type}` })
}
