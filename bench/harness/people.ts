import { randomBytes } from 'node:crypto'

export type Actor = { id: string; token: string }

/** Of different people, as in life: a handful that all requests share would have them queue at the same rows. */
export const people = { subjects: 1_000, actors: 100 }

export const actors = (): Actor[] =>
  Array.from({ length: people.actors }, (_, n) => ({
    id: `support-${n}`,
    token: randomBytes(32).toString('base64url'),
  }))
