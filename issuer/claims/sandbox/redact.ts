/** Text that a script made, such as the message of an error, without the values of its environment variables. */
export type Redact = (text: string) => string

/** Shorter ones stand everywhere in ordinary text: removing them would tell more than it hides. */
const shortestSecret = 4
const longest = 500

export const redactor = (environmentVariables: Readonly<Record<string, string>> = {}): Redact => {
  // The longest first: one may be part of another.
  const secrets = Object.entries(environmentVariables)
    .filter(([, value]) => value.length >= shortestSecret)
    .sort(([, one], [, other]) => other.length - one.length)
  // Cut last, so that no half of a value is left at the end.
  return (text) => {
    const redacted = secrets.reduce((left, [name, value]) => left.replaceAll(value, () => `[${name}]`), text)
    return redacted.length > longest ? `${redacted.slice(0, longest)}…` : redacted
  }
}
