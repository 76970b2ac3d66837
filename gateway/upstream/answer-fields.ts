import type { Exchange } from '../request/request-context.ts'

/** Adds what earlier stages want on the answer, whoever gives it. With CORS rules of our own those of the upstream are void. */
export const addAnswerFields = (flat: string[], { answerFields, route }: Exchange): string[] => {
  if (!answerFields) return flat
  const kept = route?.cors ? withoutCors(flat) : flat
  for (const name in answerFields) kept.push(name, answerFields[name]!)
  return kept
}

const withoutCors = (flat: readonly string[]): string[] =>
  flat.filter((_, index) => !flat[index - (index % 2)]!.startsWith('access-control-'))
