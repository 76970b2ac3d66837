import type { AttemptResult } from './attempt.ts'

/**
 * Receivers, and the debug pages of their frameworks, send back what they were sent. The log of attempts is open to
 * more people than the custom headers of a hook, which often are credentials, so their values are taken out of it.
 */
const shortest = 8

/**
 * Each value and each word of it (`Bearer <token>`), the longest first. Shorter ones are no secrets, and occur in any
 * text.
 */
const secretsOf = (headers: Record<string, string>): string[] =>
  Object.values(headers)
    .flatMap((value) => [value, ...value.split(/[\s,;]+/)])
    .filter((text) => text.length >= shortest)
    .sort((left, right) => right.length - left.length)

/** The result without the values of these request headers. */
export const redactResponse = (result: AttemptResult, sent: Record<string, string>): AttemptResult => {
  const secrets = secretsOf(sent)
  if (secrets.length === 0) return result
  const redacted = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text)
  const { headers, body } = result
  return {
    ...result,
    headers: headers && Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, redacted(value)])),
    // Header values are ASCII, and latin1 keeps every byte.
    body: body && Buffer.from(redacted(body.toString('latin1')), 'latin1'),
  }
}
