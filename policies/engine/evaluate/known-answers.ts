/**
 * What an entrypoint answered to inputs that it was given lately. Texts, so that every caller has an answer of its own.
 */
export interface KnownAnswers {
  get(input: string): string | undefined
  set(input: string, answer: string): void
}

const maxEntries = 1_000
/** Of input and answer together, in characters. */
const maxLength = 4_096
/** Look-ups for which an entrypoint whose inputs do not repeat is left alone. */
const pause = 100_000

/**
 * Only the part of the input that an entrypoint reads makes the text, and that repeats: the shipped policy reads
 * method, scopes and actor, not path or token. A policy that reads what is new in every request (its id, the time)
 * fills the memory once without a hit and is then not remembered for a while.
 */
export const createKnownAnswers = (): KnownAnswers => {
  const answers = new Map<string, string>()
  let hits = 0
  let pausedFor = 0
  return {
    get(input) {
      // Looking up a long text takes longer than many a decision.
      if (input.length > maxLength) return undefined
      if (pausedFor > 0) {
        pausedFor--
        return undefined
      }
      const answer = answers.get(input)
      if (answer !== undefined) hits++
      return answer
    },
    set(input, answer) {
      if (pausedFor > 0 || input.length + answer.length > maxLength) return
      if (answers.size >= maxEntries) {
        if (hits < maxEntries) pausedFor = pause
        hits = 0
        answers.clear()
      }
      answers.set(input, answer)
    },
  }
}
